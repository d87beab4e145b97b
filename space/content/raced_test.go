//go:build race

package content_test

// raced: the race detector makes everything several times slower; the short forms of the batteries do less under it.
const raced = true
