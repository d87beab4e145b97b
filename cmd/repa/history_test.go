package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
)

func TestColoured(t *testing.T) {
	const unified = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n same\n--- gone\n+++ new\n\\ No newline at end of file"
	want := "\x1b[1m--- a/x\x1b[0m\n\x1b[1m+++ b/x\x1b[0m\n\x1b[36m@@ -1,3 +1,3 @@\x1b[0m\n same\n\x1b[31m--- gone\x1b[0m\n\x1b[32m+++ new\x1b[0m\n\\ No newline at end of file"
	if d := cmp.Diff(want, coloured(unified)); d != "" {
		t.Error(d)
	}
	if got := coloured(""); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestNothingButATerminalIsColoured(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	term := &terminal{getenv: func(string) string { return "" }}
	if term.colours(file) || term.colours(&bytes.Buffer{}) {
		t.Error("a file is taken for a terminal")
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	term := &terminal{out: &out}
	term.table([][]string{{"时间", "修改者", "x"}, {"12:00", "你", "long last cell"}, {"a", "ｗide（）", ""}})
	want := "时间   修改者     x\n12:00  你         long last cell\na      ｗide（）  \n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestAttention(t *testing.T) {
	report := protocol.ContentReport{
		Unresolved:     []protocol.UnresolvedOperation{{OperationID: "op-1", Status: protocol.OperationNeedsRecovery, Conflicts: []string{"a.md", "b.md"}}},
		Missing:        []protocol.MissingContent{{Ref: protocol.ContentRef{ID: "m1"}, Path: "gone.md"}, {Ref: protocol.ContentRef{ID: "m2"}, Path: "moved.md", Proposals: []string{"here.md"}}},
		ConflictCopies: []protocol.ConflictCopy{{Path: "c (conflicted copy).md", Of: "c.md"}},
		Twins:          [][2]string{{"t.md", "T.md"}},
	}
	for _, tc := range []struct {
		lang        messages.Language
		report      protocol.ContentReport
		out, beside string
	}{
		{messages.English, protocol.ContentReport{}, "Nothing needs attention.\n", ""},
		{messages.English, report, "needs recovery  operation op-1 was interrupted; in doubt: a.md, b.md\n" +
			"missing         gone.md (content m1)\nmissing         moved.md (content m2); perhaps now here.md\n" +
			"conflict copy   c (conflicted copy).md, of c.md\nalike names     t.md and T.md\n", messages.RecoveryHint.En + "\n"},
		{messages.Chinese, report, "需要恢复  操作 op-1 被中断；存疑：a.md, b.md\n" +
			"缺失      gone.md（内容 m1）\n缺失      moved.md（内容 m2）；现在可能是 here.md\n" +
			"冲突副本  c (conflicted copy).md，源自 c.md\n名称相近  t.md 与 T.md\n", messages.RecoveryHint.Zh + "\n"},
	} {
		var out, beside bytes.Buffer
		(&terminal{out: &out, err: &beside, lang: tc.lang}).printAttention(tc.report)
		if d := cmp.Diff(tc.out, out.String()); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(tc.beside, beside.String()); d != "" {
			t.Error(d)
		}
	}
}

func TestCausesAreMethods(t *testing.T) {
	for name := range messages.Causes {
		if _, ok := protocol.Lookup(name); !ok && name != protocol.CauseObserved {
			t.Errorf("%s is no method of the protocol", name)
		}
	}
	term := &terminal{}
	if got := term.cause("future.method"); got != "future.method" {
		t.Errorf("an unknown cause is shown as %q", got)
	}
}

func TestWho(t *testing.T) {
	for _, tc := range []struct {
		revision protocol.ContentRevision
		en, zh   string
	}{
		{protocol.ContentRevision{Actor: protocol.ActorLearner}, "you", "你"},
		{protocol.ContentRevision{Actor: protocol.ActorAgent}, "agent", "智能体"},
		{protocol.ContentRevision{Actor: protocol.ActorAgent, RunID: "01a23197-68ba-70a8-b780-add2b5f7a74e"}, "agent, run b5f7a74e", "智能体，运行 b5f7a74e"},
		{protocol.ContentRevision{Actor: protocol.ActorOutside}, "another program", "其他程序"},
		{protocol.ContentRevision{Actor: "future"}, "future", "future"},
	} {
		if en := (&terminal{}).who(tc.revision); en != tc.en {
			t.Errorf("%q, want %q", en, tc.en)
		}
		if zh := (&terminal{lang: messages.Chinese}).who(tc.revision); zh != tc.zh {
			t.Errorf("%q, want %q", zh, tc.zh)
		}
	}
}
