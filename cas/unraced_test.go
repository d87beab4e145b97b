//go:build !race

package cas_test

const raced = false
