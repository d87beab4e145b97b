package connection_test

import (
	"testing"

	"go.uber.org/goleak"
)

// The Google SDK imports OpenCensus, which starts one goroutine for the life of the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
