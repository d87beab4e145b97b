package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/repa-app/repa/cmd/repa/messages"
)

type completionCommand struct {
	Shell string `arg:"" help:"${completion_shell}"`
}

// Run prints a script that completes commands and flags; everything else is completed as files.
func (c *completionCommand) Run(_ context.Context, t *terminal) error {
	words := completions(t.grammar.Model.Node, nil)
	switch c.Shell {
	case "bash":
		bashScript(t, words)
	case "zsh":
		fmt.Fprintln(t.out, "#compdef repa\nautoload -U +X bashcompinit && bashcompinit")
		bashScript(t, words)
	case "fish":
		fishScript(t, words)
	default:
		return t.fail(exitUsage, messages.ShellUnknown, c.Shell)
	}
	return nil
}

// completion is what may follow a command path.
type completion struct {
	path  []string // "" for repa itself
	words []string
}

// completions walks the grammar, commands before their sub-commands.
func completions(n *kong.Node, path []string) []completion {
	here := completion{path: path}
	var below []completion
	for _, child := range n.Children {
		if child.Type == kong.CommandNode {
			here.words = append(here.words, child.Name)
			below = append(below, completions(child, append(slices.Clone(path), child.Name))...)
		}
	}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			here.words = append(here.words, "--"+f.Name)
		}
	}
	return append([]completion{here}, below...)
}

func bashScript(t *terminal, all []completion) {
	fmt.Fprint(t.out, `_repa() {
  local cur="${COMP_WORDS[COMP_CWORD]}" path="" word words=""
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
`)
	for _, c := range all {
		if len(c.path) > 0 {
			last := len(c.path) - 1
			fmt.Fprintf(t.out, "      %q) path=%q ;;\n", strings.Join(c.path[:last], " ")+" "+c.path[last], strings.Join(c.path, " "))
		}
	}
	fmt.Fprint(t.out, "    esac\n  done\n  case \"$path\" in\n")
	for _, c := range all {
		fmt.Fprintf(t.out, "    %q) words=%q ;;\n", strings.Join(c.path, " "), strings.Join(c.words, " "))
	}
	fmt.Fprint(t.out, `  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _repa repa
`)
}

func fishScript(t *terminal, all []completion) {
	for _, c := range all {
		condition := "__fish_use_subcommand"
		if len(c.path) > 0 {
			condition = "__fish_seen_subcommand_from " + strings.Join(c.path, "; and __fish_seen_subcommand_from ")
		}
		for _, w := range c.words {
			if flag, ok := strings.CutPrefix(w, "--"); ok {
				fmt.Fprintf(t.out, "complete -c repa -n %q -l %s\n", condition, flag)
			} else {
				fmt.Fprintf(t.out, "complete -c repa -n %q -a %s\n", condition, w)
			}
		}
	}
}
