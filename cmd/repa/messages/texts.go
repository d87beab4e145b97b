package messages

// What the commands say.
var (
	FirstContact = Message{
		"First time here: Repa will create the folder %s for its own data and change nothing else.",
		"首次使用此文件夹：Repa 将创建 %s 存放自己的数据，不改动其他任何内容。",
	}
	AskGoOn   = Message{"Go on? [Y/n] ", "继续吗？[Y/n] "}
	NotGoneOn = Message{"Nothing was created.", "未创建任何内容。"}

	NoSuchSpace   = Message{"there is no folder %s; check the path, or make the folder first", "文件夹 %s 不存在；请检查路径，或先创建该文件夹"}
	SpaceIsFile   = Message{"%s is a file, not a folder; a learning space is a folder", "%s 是文件而不是文件夹；学习空间必须是文件夹"}
	SpaceDenied   = Message{"folder %s cannot be read; check its permissions", "无法读取文件夹 %s；请检查权限"}
	NoPrompt      = Message{"nothing to ask: give a prompt, for example: repa run \"What is in my notes?\"", "没有问题：请给出提示，例如：repa run \"我的笔记里有什么？\""}
	NoSession     = Message{"there is no session to continue in %s yet; leave out --continue to begin one", "%s 中还没有可继续的会话；去掉 --continue 即可开始新会话"}
	UnknownOption = Message{"unknown session %s in %s; `repa session list` shows the sessions", "%[2]s 中没有会话 %[1]s；可用 `repa session list` 查看会话"}
	StdinText     = Message{"Attached text (stdin):", "附加文本（标准输入）："}
	StdinSilent   = Message{
		"Nothing came on standard input for 3 seconds; going on without it. Use < /dev/null to say that there is nothing.",
		"标准输入 3 秒内没有内容，将不等待而继续。可用 < /dev/null 表明没有输入。",
	}
	StdinTooLarge = Message{"standard input is larger than %d MiB; put the text into a file of the space and ask about that", "标准输入超过 %d MiB;请将文本存为空间中的文件再提问"}
	StdinNoText   = Message{"standard input is not UTF-8 text; only text can be attached", "标准输入不是 UTF-8 文本；只能附加文本"}

	ModelForm     = Message{"model %q has no connection; write CONNECTION/MODEL, for example openai/gpt-5 or ollama/qwen3", "模型 %q 缺少连接名；请写成 连接/模型，例如 openai/gpt-5 或 ollama/qwen3"}
	ModelUnknown  = Message{"unknown connection %q in --model; known are openai, anthropic, google, ollama and builtin", "--model 中的连接 %q 未知；可用 openai、anthropic、google、ollama 和 builtin"}
	ModelNoKey    = Message{"%s needs a key: set %s in the environment of this command", "%s 需要密钥：请在此命令的环境变量 %s 中设置"}
	HintModels    = Message{"To use a language model, name one with --model:", "要使用语言模型，请用 --model 指定："}
	HintKeyThere  = Message{"%s is set here", "此处已设置 %s"}
	HintKeyAbsent = Message{"set %s first", "请先设置 %s"}
	HintLocal     = Message{"a model of a local Ollama server (%s)", "本机 Ollama 服务器的模型（%s）"}

	Cancelling  = Message{"Stopping… (Ctrl+C again leaves at once)", "正在停止……(再按 Ctrl+C 立即离开)"}
	Cancelled   = Message{"Stopped. What was finished is kept.", "已停止。已完成的内容均已保存。"}
	Changed     = Message{"changed %s", "已修改 %s"}
	Created     = Message{"created %s", "已创建 %s"}
	Removed     = Message{"removed %s", "已删除 %s"}
	ToolRunning = Message{"· %s %s", "· %s %s"}
	RunFailed   = Message{"The run failed (%s): %s", "运行失败（%s）：%s"}
	NotEntered  = Message{"Not delivered (request %s): %s. Send it again:\n%s", "未送达（请求 %s）：%s。请重新发送：\n%s"}
	Continue    = Message{"session %s", "会话 %s"}

	ChatWelcome = Message{"Repa in %s. Write a question; /help shows the commands.", "Repa 位于 %s。请输入问题；/help 查看命令。"}
	ChatHelp    = Message{
		`A line is sent; while an answer is being written, it is added to the running task.
  /new          begin a new session
  /sessions     list the sessions
  /use ID       go on in another session
  /cancel       stop the running task
  /exit, /quit  leave
  /help         this list`,
		`输入的一行会被发送;回答进行中时,会补充到正在运行的任务。
  /new          开始新会话
  /sessions     列出会话
  /use ID       转到另一个会话
  /cancel       停止正在运行的任务
  /exit、/quit   离开
  /help         显示本列表`,
	}
	ChatUnknown   = Message{"unknown command %s; /help shows the commands", "未知命令 %s;/help 查看命令"}
	ChatNew       = Message{"New session %s.", "新会话 %s。"}
	ChatUse       = Message{"Session %s: %s", "会话 %s:%s"}
	ChatUseWhich  = Message{"which session? /sessions lists them; then /use ID", "哪个会话？/sessions 列出全部，然后 /use ID"}
	ChatNothing   = Message{"Nothing is running.", "没有正在运行的任务。"}
	ChatSteered   = Message{"(added to the running task)", "(已补充到正在运行的任务)"}
	ChatBusySwap  = Message{"A task is running here; it goes on.", "这里有任务正在运行，它会继续。"}
	NoSessionsYet = Message{"No sessions yet.", "还没有会话。"}

	StatusNone    = Message{"No backend is running.", "没有正在运行的后端。"}
	StatusRunning = Message{"Backend %s (process %d) at %s: %d spaces, %d sessions, %d runs.", "后端 %s（进程 %d）位于 %s：%d 个空间，%d 个会话，%d 个运行。"}
	StopNone      = Message{"No backend was running.", "没有后端在运行。"}
	StopDone      = Message{"The backend (process %d) has ended.", "后端（进程 %d）已结束。"}
	StopStuck     = Message{"the backend (process %d) has not ended yet; `repa stop --now` ends it without waiting for its runs", "后端（进程 %d）尚未结束；`repa stop --now` 可不等待运行而结束它"}

	AlreadyServing = Message{"another backend serves this state folder already (process %d); stop it with `repa stop`", "已有后端在使用此状态目录（进程 %d）；可用 `repa stop` 停止它"}
	NotReady       = Message{"the backend did not become ready within %v; its log is %s", "后端未能在 %v 内就绪；日志位于 %s"}
	BackendDied    = Message{"the backend could not start: %s (log: %s)", "后端无法启动：%s（日志：%s）"}
	BackendLost    = Message{"the backend ended while this command was waiting; run it again", "等待期间后端已结束；请重新运行此命令"}
	BadFolder      = Message{"%s must be a folder of yours that nobody else can enter (mode 0700)", "%s 必须是只有你能进入的文件夹（权限 0700）"}

	Messages      = Message{"%s  %s  %4d messages  %s", "%s  %s  %4d 条消息  %s"}
	OfflineMark   = Message{"no language model: finds and quotes passages", "不是语言模型：查找并引用段落"}
	CallBadJSON   = Message{"the parameters are not valid JSON: %v", "参数不是有效的 JSON:%v"}
	CallNoSpace   = Message{"\"$space\" stands for the space that --space opens; give --space DIR", "\"$space\" 代表 --space 打开的空间；请给出 --space DIR"}
	CallUnknown   = Message{"unknown method %s; GET /protocol.json of the backend lists the methods", "未知方法 %s；后端的 GET /protocol.json 列出所有方法"}
	ShellUnknown  = Message{"unknown shell %q; choose bash, zsh or fish", "未知 shell %q;可选 bash、zsh 或 fish"}
	WhoUser       = Message{"You", "你"}
	WhoAssistant  = Message{"Repa", "Repa"}
	WhoTool       = Message{"tool %s", "工具 %s"}
	WhoContext    = Message{"context", "背景"}
	UsageSeeHelp  = Message{"`repa %s --help` shows how", "用法见 `repa %s --help`"}
	UsageSeeHelp0 = Message{"`repa --help` shows how", "用法见 `repa --help`"}
)

// What doctor says.
var (
	DoctorOK      = Message{"ok", "正常"}
	DoctorWarning = Message{"note", "注意"}
	DoctorFailed  = Message{"WRONG", "错误"}

	DoctorFolder      = Message{"folder", "文件夹"}
	DoctorLock        = Message{"lock", "锁"}
	DoctorJournal     = Message{"journal", "日志账"}
	DoctorSessions    = Message{"sessions", "会话"}
	DoctorSettings    = Message{"settings", "设置"}
	DoctorRuntime     = Message{"backend", "后端"}
	DoctorClock       = Message{"clock", "时钟"}
	DoctorWatch       = Message{"file watching", "文件监视"}
	DoctorKeychain    = Message{"keychain", "钥匙串"}
	DoctorDisk        = Message{"disk space", "磁盘空间"}
	DoctorConnection  = Message{"connection %s", "连接 %s"}
	DoctorStore       = Message{"store", "存储"}
	DoctorStoreNone   = Message{"not there yet; it is made when the space is next opened", "尚未建立；下次打开空间时会建立"}
	DoctorStoreOK     = Message{"%d objects of %s in %d packs", "%d 个对象，共 %s，%d 个包"}
	DoctorStoreHurt   = Message{"%d places are damaged; `repa cas verify` names them, `repa cas repair` saves the rest", "有 %d 处损坏；`repa cas verify` 会列出，`repa cas repair` 会保全其余内容"}
	DoctorReadable    = Message{"%s can be read and written", "%s 可读写"}
	DoctorNotSpace    = Message{"%s is not a learning space yet", "%s 还不是学习空间"}
	DoctorNotWritable = Message{"%s cannot be written: %v", "%s 不可写：%v"}
	DoctorMetaMode    = Message{"%s can be entered by others (mode %v); make it 0700", "他人可以进入 %s(权限 %v);请改为 0700"}
	DoctorLockFree    = Message{"nobody has the space open", "没有程序打开此空间"}
	DoctorLockHeld    = Message{"open in the backend of process %d", "已被进程 %d 的后端打开"}
	DoctorJournalOK   = Message{"%d records, intact", "%d 条记录，完好"}
	DoctorJournalTorn = Message{"%d records; %d bytes at the end were never confirmed and will be moved aside at the next start", "%d 条记录；末尾 %d 字节从未确认，下次启动时会移到一旁"}
	DoctorSessionsOK  = Message{"%d session files, intact", "%d 个会话文件，完好"}
	DoctorSessionBad  = Message{"%s: %v", "%s:%v"}
	DoctorSessionHurt = Message{"%s: %d lines cannot be read; they are kept", "%s：%d 行无法读取，已原样保留"}
	DoctorNoSettings  = Message{"no settings file; defaults are used", "没有设置文件，使用默认值"}
	DoctorSettingsBad = Message{"%s is no valid JSON: %v", "%s 不是有效的 JSON:%v"}
	DoctorRunning     = Message{"running (process %d)", "正在运行（进程 %d）"}
	DoctorStale       = Message{"not running; a connection file is left from process %d and will be replaced", "未运行；遗留有进程 %d 的连接文件，之后会被替换"}
	DoctorNotRunning  = Message{"not running; it starts when it is needed", "未运行；需要时会启动"}
	DoctorClockOK     = Message{"agrees with the times of the files", "与文件时间一致"}
	DoctorClockAhead  = Message{"%s is dated %v ahead of the clock; check the date", "%s 的时间比时钟超前 %v；请检查日期"}
	DoctorWatchOK     = Message{"%d watchers, %d folders", "%d 个监视器，%d 个文件夹"}
	DoctorWatchLow    = Message{"only %d folders can be watched; larger spaces will be scanned instead", "只能监视 %d 个文件夹；更大的空间将改为定期扫描"}
	DoctorWatchOther  = Message{"no limit known on this system", "此系统没有已知限制"}
	DoctorKeysOK      = Message{"available", "可用"}
	DoctorKeysNone    = Message{"not available (%v); keys would be kept in a file that only you can read", "不可用（%v）；密钥会保存在只有你能读取的文件中"}
	DoctorDiskOK      = Message{"%d MiB free", "剩余 %d MiB"}
	DoctorDiskLow     = Message{"only %d MiB free; make room before you go on", "仅剩 %d MiB;请先腾出空间"}
	DoctorDiskUnknown = Message{"cannot be told on this system", "此系统无法查询"}
	DoctorReachable   = Message{"%s answers", "%s 有应答"}
	DoctorNoKeys      = Message{"no key is set in this environment (%s)", "此环境未设置密钥（%s）"}
)

// What is said about the store.
var (
	NoStore        = Message{"%s has no store yet; it is made when the space is opened for the first time", "%s 还没有存储；首次打开该空间时会建立"}
	StoreBadID     = Message{"%v; copy the id as repa cas ls prints it", "%v；请照抄 repa cas ls 输出的标识"}
	StatObjects    = Message{"objects", "对象"}
	StatStored     = Message{"stored", "占用"}
	StatDead       = Message{"dead", "可回收"}
	StatPacks      = Message{"packs", "包"}
	StatHolds      = Message{"holds", "持有"}
	StatHoldsOf    = Message{"%[1]s: %[2]d by %[3]d owners", "%[1]s：%[2]d，来自 %[3]d 个持有者"}
	StatCollected  = Message{"last collection", "上次回收"}
	StatNever      = Message{"none yet", "尚未进行"}
	StatLast       = Message{"%s: %d objects, %s freed", "%s：%d 个对象，释放 %s"}
	StoreNobody    = Message{"nobody", "无人"}
	StoreInDoubt   = Message{"Nothing is collected, because damage may have hidden what is held: %s. Run repa cas repair.", "损坏可能遮住了持有记录，因此不会回收任何内容：%s。请运行 repa cas repair。"}
	StoreDamaged   = Message{"%s is damaged: %s at byte %d (%s); held by: %s", "%s 已损坏：%s 第 %d 字节（%s）；持有者：%s"}
	StoreGap       = Message{"%s is damaged from byte %d to %d; which records were there is not known", "%s 从第 %d 字节到第 %d 字节已损坏；其中的记录未知"}
	StoreFile      = Message{"%s is damaged; an older one is used", "%s 已损坏；改用较早的一个"}
	StoreSound     = Message{"%d objects of %s, all intact", "%d 个对象，共 %s，全部完好"}
	StoreUnsound   = Message{"Nothing was changed. Run repa cas repair; what is lost can be put again from its source.", "没有改动任何内容。请运行 repa cas repair；丢失的内容可以从来源重新放入。"}
	StoreCollected = Message{"%d objects removed, %s freed", "清除 %d 个对象，释放 %s"}
	StoreRepaired  = Message{"%d objects are intact and in the index; %d damaged ones that nobody held were dropped", "%d 个对象完好并已编入索引；%d 个无人持有的损坏对象已去除"}
	StoreMissing   = Message{"%s is damaged and held by %s; putting the same bytes again heals it", "%s 已损坏且仍被 %s 持有；重新放入相同内容即可修复"}
	RepairInUse    = Message{"%v. `repa stop` ends the backend of your commands", "%v。`repa stop` 可结束命令所用的后端"}
	StoreAside     = Message{"moved aside: %s", "已移到一旁：%s"}
	StoreRecovered = Message{"What nobody was known to hold is held by %s from now on, because holds may have been lost.", "由于持有记录可能丢失，无人持有的内容从现在起由 %s 持有。"}
)

// What is said about the history of documents.
var (
	NoPath           = Message{"the path is empty; give one relative to the space, or repa:document/ID", "路径为空；请给出相对于空间的路径，或 repa:document/标识"}
	Ambiguous        = Message{"%q fits %d; give more of it", "%q 对应 %d 个；请写得更完整"}
	RevisionUnknown  = Message{"no revision %q of %s is known; `repa history` lists them", "%[2]s 没有版本 %[1]q；可用 `repa history` 查看"}
	OperationUnknown = Message{"there is no operation %q in %s; `repa history PATH` shows the operations of a document", "%[2]s 中没有操作 %[1]q；可用 `repa history 路径` 查看文档的操作"}
	RunUnknown       = Message{"run %q changed nothing in %s; `repa history PATH` shows the runs that changed a document", "运行 %q 在 %s 中没有任何修改；可用 `repa history 路径` 查看修改过文档的运行"}

	HistoryTime      = Message{"TIME", "时间"}
	HistoryWho       = Message{"WHO", "修改者"}
	HistoryWhat      = Message{"WHAT", "操作"}
	HistorySize      = Message{"SIZE", "大小"}
	HistoryRevision  = Message{"REVISION", "版本"}
	HistoryOperation = Message{"OPERATION", "操作标识"}
	HistoryGone      = Message{"%s (no file)", "%s（无文件）"}
	HistoryElsewhere = Message{"%s, as %s", "%s，当时为 %s"}
	HistoryNone      = Message{"Nothing has changed %s since Repa knows it.", "自 Repa 知道以来，%s 没有任何修改。"}
	HistoryLimit     = Message{"--limit is a number of revisions; 0 lists all", "--limit 是版本数量；0 表示全部"}
	ActorLearner     = Message{"you", "你"}
	ActorAgent       = Message{"agent", "智能体"}
	ActorAgentRun    = Message{"agent, run %s", "智能体，运行 %s"}
	ActorOutside     = Message{"another program", "其他程序"}
	DiffNone         = Message{"Nothing differs.", "没有差异。"}

	UndoWhich      = Message{"give either an operation or --run ID; `repa history PATH` shows both", "请给出一个操作，或 --run 标识；可用 `repa history 路径` 查看"}
	UndoDone       = Message{"`repa undo %s` takes this back.", "`repa undo %s` 可撤回此操作。"}
	UndoStays      = Message{"operation %s stays: it cannot be told apart from later changes of %s", "操作 %s 未撤销：它与 %s 之后的修改无法分开"}
	RestoreNothing = Message{"%s is so already; nothing was changed.", "%s 已是如此，没有改动。"}
)

// What is said about what needs attention.
var (
	AttentionNone    = Message{"Nothing needs attention.", "没有需要留意的内容。"}
	NeedsRecovery    = Message{"needs recovery", "需要恢复"}
	RecoveryOf       = Message{"operation %s was interrupted; in doubt: %s", "操作 %s 被中断；存疑：%s"}
	RecoveryHint     = Message{"`repa call operation.reconcile` settles an operation and leaves the files as they are; operation.resolve chooses file by file.", "`repa call operation.reconcile` 了结操作并保持文件现状；operation.resolve 可逐个文件选择。"}
	MissingFile      = Message{"missing", "缺失"}
	MissingOf        = Message{"%s (content %s)", "%s（内容 %s）"}
	MissingPerhaps   = Message{"%s; perhaps now %s", "%s；现在可能是 %s"}
	ConflictCopy     = Message{"conflict copy", "冲突副本"}
	ConflictCopyOf   = Message{"%s, of %s", "%s，源自 %s"}
	Twins            = Message{"alike names", "名称相近"}
	TwinsOf          = Message{"%s and %s", "%s 与 %s"}
	ChangedOutside   = Message{"changed by another program", "被其他程序修改"}
	ChangedOutsideAt = Message{"%s (%s)", "%s（%s）"}
)
