//go:build !race

package content_test

const raced = false
