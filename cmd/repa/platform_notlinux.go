//go:build unix && !linux

package main

func zombie(int) bool { return false }
