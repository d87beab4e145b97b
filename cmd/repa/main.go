package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/repa-app/repa/cmd/repa/messages"
)

// Exit codes. Completed is 0.
const (
	exitFailed    = 1
	exitUsage     = 2
	exitCancelled = 130
)

// commandLine is the grammar. The texts are in the message catalogue.
type commandLine struct {
	Yes  bool     `short:"y" help:"${flag_yes}"`
	Help helpFlag `short:"h" help:"${flag_help}"`

	Run        runCommand        `cmd:"" help:"${run}"`
	Chat       chatCommand       `cmd:"" default:"withargs" help:"${chat}"`
	Call       callCommand       `cmd:"" help:"${call}"`
	Serve      serveCommand      `cmd:"" help:"${serve}"`
	Status     statusCommand     `cmd:"" help:"${status}"`
	Stop       stopCommand       `cmd:"" help:"${stop}"`
	Session    sessionCommands   `cmd:"" help:"${session}"`
	History    historyCommand    `cmd:"" help:"${history}"`
	Diff       diffCommand       `cmd:"" help:"${diff}"`
	Undo       undoCommand       `cmd:"" help:"${undo}"`
	Restore    restoreCommand    `cmd:"" help:"${restore}"`
	Changes    changesCommand    `cmd:"" help:"${changes}"`
	Model      modelCommands     `cmd:"" help:"${model}"`
	Cas        casCommands       `cmd:"" help:"${cas}"`
	Doctor     doctorCommand     `cmd:"" help:"${doctor}"`
	Version    versionCommand    `cmd:"" help:"${version}"`
	Completion completionCommand `cmd:"" help:"${completion}"`
}

// serveLine is the grammar of the backend process alone. The whole one takes as long to build as everything else that a backend
// does until it is ready.
type serveLine struct {
	Yes   bool         `short:"y" help:"${flag_yes}"`
	Help  helpFlag     `short:"h" help:"${flag_help}"`
	Serve serveCommand `cmd:"" help:"${serve}"`
}

// terminal is what a command works with.
type terminal struct {
	in       *os.File
	out, err io.Writer
	lang     messages.Language
	getenv   func(string) string
	yes      bool
	quiet    bool // the folder is Repa's own: nothing to ask or say about it
	grammar  *kong.Kong
}

// text is a message of the catalogue.
func (t *terminal) text(m messages.Message, args ...any) string { return t.lang.Text(m, args...) }

// say prints a line for people beside the output.
func (t *terminal) say(m messages.Message, args ...any) {
	fmt.Fprintln(t.err, t.text(m, args...))
}

// exit ends a command with a code; its message, if any, is printed.
type exit struct {
	code    int
	message string
}

func (e *exit) Error() string { return e.message }

// fail is a failure with a message of the catalogue.
func (t *terminal) fail(code int, m messages.Message, args ...any) error {
	return &exit{code, t.text(m, args...)}
}

func main() {
	t := &terminal{in: os.Stdin, out: os.Stdout, err: os.Stderr, lang: messages.Choose(os.Getenv), getenv: os.Getenv}
	os.Exit(t.main(context.Background(), os.Args[1:]))
}

// main runs one command line and returns the exit code.
func (t *terminal) main(ctx context.Context, args []string) int {
	var line commandLine
	var grammar any = &line
	if len(args) > 0 && args[0] == "serve" {
		grammar = &serveLine{}
	}
	var err error
	t.grammar, err = kong.New(grammar, kong.Name("repa"), kong.Description("${about}"), helpTexts(t.lang), kong.NoDefaultHelp(),
		kong.Writers(t.out, t.err), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Exit(func(int) { panic(helpShown{}) }), kong.Bind(t))
	if err != nil {
		fmt.Fprintln(t.err, err)
		return exitFailed
	}
	return t.dispatch(ctx, args, &line)
}

// helpShown ends parsing when --help was printed.
type helpShown struct{}

func (t *terminal) dispatch(ctx context.Context, args []string, line *commandLine) (code int) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(helpShown); !ok {
				panic(v)
			}
			code = 0
		}
	}()
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		t.grammar.Model.Node.DefaultCmd = nil // the help of all commands, not of the one that runs when none is named
	}
	parsed, err := t.grammar.Parse(args)
	if err != nil {
		return t.usage(args, err)
	}
	t.yes = line.Yes
	parsed.BindTo(ctx, (*context.Context)(nil))
	return t.report(parsed.Run())
}

// usage reports a command line that cannot be understood. Programs that asked for JSON get JSON.
func (t *terminal) usage(args []string, err error) int {
	if asksJSON(args) {
		printJSON(t.out, runResult{Status: statusFailed, Changes: []change{}, Error: &failure{"usage", err.Error()}, Type: resultType(args)})
		return exitUsage
	}
	fmt.Fprintf(t.err, "repa: %v\n", err)
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context.Command() != "" {
		name, _, _ := strings.Cut(p.Context.Command(), " <")
		t.say(messages.UsageSeeHelp, name)
	} else {
		t.say(messages.UsageSeeHelp0)
	}
	return exitUsage
}

func asksJSON(args []string) bool {
	if !slices.Contains(args, "run") {
		return false
	}
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--output="); ok && v != outputText {
			return true
		}
		if a == "--output" && i+1 < len(args) && args[i+1] != outputText {
			return true
		}
	}
	return false
}

func resultType(args []string) string {
	for _, a := range args {
		if strings.HasSuffix(a, outputStream) {
			return "result"
		}
	}
	return ""
}

func (t *terminal) report(err error) int {
	if err == nil {
		return 0
	}
	var e *exit
	if errors.As(err, &e) {
		if e.message != "" {
			fmt.Fprintln(t.err, "repa: "+e.message)
		}
		return e.code
	}
	fmt.Fprintln(t.err, "repa: "+err.Error())
	return exitFailed
}

func helpTexts(lang messages.Language) kong.Vars {
	vars := kong.Vars{}
	for name, m := range messages.Help {
		vars[name] = lang.Text(m)
	}
	return vars
}

// helpFlag prints the help of where it stands.
type helpFlag bool

// BeforeReset implements kong's hook: help is printed before anything is checked.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	ctx.Exit(0)
	return nil
}
