// Package testkit holds what tests share, one small package a folder: crashfs (a disk that fails, tears and crashes on order),
// modelserver (scripted model endpoints over real HTTP), clock, backend (runs the real binary in a temporary home) and frames
// (plays recorded protocol exchanges). This folder's own test states the rules that hold for the whole module: which package
// may import which, and who may open files.
package testkit
