// Package backend runs the real program in a temporary home, for tests that are about processes: starts, ends, signals, kills.
//
// [Build] compiles cmd/repa once for a test binary; its TestMain calls [RemoveBuild] at the end. [Start] runs `repa serve` with a
// home of its own (REPA_HOME) and returns when a front end can talk to it. A [Process] lives in a process group of its own, which is
// killed when the test ends; on Linux also when the test binary dies. A Process belongs to its test's goroutine, except for
// Client, Command and Log.
//
// The environment of the program is not the tester's: only PATH is taken over, so no key and no proxy of the machine gets in.
package backend
