package messages

// Causes are the names of methods in words.
var Causes = map[string]Message{
	"content.write":          {"written", "写入"},
	"content.edit":           {"edited", "编辑"},
	"content.applyPatch":     {"patched", "打补丁"},
	"content.move":           {"moved", "移动"},
	"content.copy":           {"copied", "复制"},
	"content.remove":         {"removed", "删除"},
	"content.restore":        {"restored", "恢复"},
	"content.associate":      {"registered", "登记"},
	"content.relink":         {"found again", "重新关联"},
	"content.setComposition": {"composed", "组合"},
	"material.collect":       {"collected", "收集"},
	"operation.undo":         {"undo", "撤销"},
	"operation.undoRun":      {"undo of a run", "撤销运行"},
	"observed":               {"changed", "修改"},
}
