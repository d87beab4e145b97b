package protocol

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol/internal/shape"
)

// ThinkingLevel says how much a model thinks before it answers.
type ThinkingLevel string

// Thinking levels, least first.
const (
	ThinkingOff     ThinkingLevel = "off"
	ThinkingMinimal ThinkingLevel = "minimal"
	ThinkingLow     ThinkingLevel = "low"
	ThinkingMedium  ThinkingLevel = "medium"
	ThinkingHigh    ThinkingLevel = "high"
	ThinkingXHigh   ThinkingLevel = "xhigh"
	ThinkingMax     ThinkingLevel = "max"
)

// ShapeValues lists the levels.
func (ThinkingLevel) ShapeValues() []string {
	return []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}
}

// Modality is a kind of input that a model takes.
type Modality string

// Kinds of model input.
const (
	ModalityText  Modality = "text"
	ModalityImage Modality = "image"
)

// ShapeValues lists the kinds.
func (Modality) ShapeValues() []string { return []string{"text", "image"} }

// AuthMode says whether a connection needs credentials.
type AuthMode string

// Modes of authentication.
const (
	AuthCredentials AuthMode = "credentials"
	AuthNone        AuthMode = "none"
)

// ShapeValues lists the modes.
func (AuthMode) ShapeValues() []string { return []string{"credentials", "none"} }

// AuthType is the kind of credentials that a connection has.
type AuthType string

// Kinds of credentials.
const (
	AuthAPIKey AuthType = "api_key"
	AuthOAuth  AuthType = "oauth"
)

// ShapeValues lists the kinds.
func (AuthType) ShapeValues() []string { return []string{"api_key", "oauth"} }

// MaxTokensField is the name under which a compatible server takes the output limit.
type MaxTokensField string

// ShapeValues lists the names.
func (MaxTokensField) ShapeValues() []string { return []string{"max_completion_tokens", "max_tokens"} }

// ThinkingFormat is the dialect in which a compatible server takes thinking options.
type ThinkingFormat string

// ShapeValues lists the dialects.
func (ThinkingFormat) ShapeValues() []string {
	return []string{"openai", "openrouter", "deepseek", "together", "baseten", "zai", "qwen", "chat-template", "qwen-chat-template", "string-thinking", "ant-ling"}
}

// ModelCompatibility says where a compatible server departs from the original; what is absent is as usual.
type ModelCompatibility struct {
	SupportsStore                               *bool          `json:"supportsStore,omitzero"`
	SupportsDeveloperRole                       *bool          `json:"supportsDeveloperRole,omitzero"`
	SupportsReasoningEffort                     *bool          `json:"supportsReasoningEffort,omitzero"`
	SupportsUsageInStreaming                    *bool          `json:"supportsUsageInStreaming,omitzero"`
	SupportsFinishReason                        *bool          `json:"supportsFinishReason,omitzero"`
	MaxTokensField                              MaxTokensField `json:"maxTokensField,omitzero"`
	RequiresToolResultName                      *bool          `json:"requiresToolResultName,omitzero"`
	RequiresAssistantAfterToolResult            *bool          `json:"requiresAssistantAfterToolResult,omitzero"`
	RequiresThinkingAsText                      *bool          `json:"requiresThinkingAsText,omitzero"`
	RequiresReasoningContentOnAssistantMessages *bool          `json:"requiresReasoningContentOnAssistantMessages,omitzero"`
	ThinkingFormat                              ThinkingFormat `json:"thinkingFormat,omitzero"`
	SupportsStrictMode                          *bool          `json:"supportsStrictMode,omitzero"`
	SupportsMaxOutputTokens                     *bool          `json:"supportsMaxOutputTokens,omitzero"`
}

// ModelCost is US dollars per million tokens.
type ModelCost struct {
	Input      float64 `json:"input" shape:"min=0"`
	Output     float64 `json:"output" shape:"min=0"`
	CacheRead  float64 `json:"cacheRead" shape:"min=0"`
	CacheWrite float64 `json:"cacheWrite" shape:"min=0"`
}

// ConnectionModel is a model that a connection describes itself.
type ConnectionModel struct {
	ID            string              `json:"id" shape:"min=1"`
	Name          string              `json:"name" shape:"min=1"`
	API           string              `json:"api" shape:"min=1"`
	Reasoning     bool                `json:"reasoning"`
	Input         []Modality          `json:"input" shape:"min=1,unique"`
	ContextWindow Int                 `json:"contextWindow" shape:"min=1"`
	MaxTokens     Int                 `json:"maxTokens" shape:"min=1"`
	Cost          ModelCost           `json:"cost"`
	Compat        *ModelCompatibility `json:"compat,omitzero"`
}

// CatalogModel is a model that can be selected at a connection.
type CatalogModel struct {
	ID             string              `json:"id" shape:"min=1"`
	Name           string              `json:"name" shape:"min=1"`
	API            string              `json:"api" shape:"min=1"`
	Reasoning      bool                `json:"reasoning"`
	Input          []Modality          `json:"input" shape:"min=1,unique"`
	ContextWindow  Int                 `json:"contextWindow" shape:"min=1"`
	MaxTokens      Int                 `json:"maxTokens" shape:"min=1"`
	Cost           ModelCost           `json:"cost"`
	Compat         *ModelCompatibility `json:"compat,omitzero"`
	ThinkingLevels []ThinkingLevel     `json:"thinkingLevels"`
}

// Authentication says whether a connection has credentials, never which.
type Authentication struct {
	Configured bool     `json:"configured"`
	Type       AuthType `json:"type,omitzero"`
}

// ModelConnection is a way to reach models, without its secret.
type ModelConnection struct {
	Name           string            `json:"name" shape:"min=1,max=256"`
	Provider       string            `json:"provider" shape:"min=1"`
	BaseURL        string            `json:"baseUrl,omitzero" shape:"min=1"`
	AuthMode       AuthMode          `json:"authMode"`
	Models         []ConnectionModel `json:"models,omitzero" shape:"min=1"`
	ID             ID                `json:"id"`
	Revision       Revision          `json:"revision"`
	AuthID         ID                `json:"authId"`
	Authentication Authentication    `json:"authentication"`
}

// ModelCatalog is a connection with the models that it offers.
type ModelCatalog struct {
	Connection ModelConnection `json:"connection"`
	Models     []CatalogModel  `json:"models"`
}

// ModelSelection names a model at a connection.
type ModelSelection struct {
	ConnectionID ID     `json:"connectionId"`
	ID           string `json:"id" shape:"min=1"`
}

// FallbackTrigger is the only reason for which a fallback model takes over.
type FallbackTrigger string

// OnTransientError moves on when a model fails for a passing reason.
const OnTransientError FallbackTrigger = "transient_error"

// ShapeValues lists the reasons.
func (FallbackTrigger) ShapeValues() []string { return []string{"transient_error"} }

// ModelFallback is the order of models to try next.
type ModelFallback struct {
	On     FallbackTrigger  `json:"on"`
	Models []ModelSelection `json:"models" shape:"min=1,unique"`
}

// ModelBinding is a selection with the connection as it was at admission.
type ModelBinding struct {
	Connection ModelConnection `json:"connection"`
	ModelID    string          `json:"modelId" shape:"min=1"`
}

// BoundModelFallback is a fallback with its connections as they were at admission.
type BoundModelFallback struct {
	On     FallbackTrigger `json:"on"`
	Models []ModelBinding  `json:"models" shape:"min=1"`
}

// AttemptStatus is the state of one model attempt.
type AttemptStatus string

// ShapeValues lists the states.
func (AttemptStatus) ShapeValues() []string {
	return []string{"running", "completed", "failed", "cancelled", "interrupted"}
}

// Usage counts tokens.
type Usage struct {
	Input       float64 `json:"input"`
	Output      float64 `json:"output"`
	CacheRead   float64 `json:"cacheRead"`
	CacheWrite  float64 `json:"cacheWrite"`
	TotalTokens float64 `json:"totalTokens"`
}

// ModelAttempt is one try of a request at one model.
type ModelAttempt struct {
	CallID     ID            `json:"callId"`
	Index      Int           `json:"index" shape:"min=0"`
	Binding    ModelBinding  `json:"binding"`
	StartedAt  Millis        `json:"startedAt"`
	FinishedAt Millis        `json:"finishedAt,omitzero"`
	Status     AttemptStatus `json:"status"`
	Usage      *Usage        `json:"usage,omitzero"`
	Error      *Failure      `json:"error,omitzero"`
}

// CompactionOptions say when and how far a history is shortened.
type CompactionOptions struct {
	Enabled          bool `json:"enabled"`
	ReserveTokens    Int  `json:"reserveTokens" shape:"min=1"`
	KeepRecentTokens Int  `json:"keepRecentTokens" shape:"min=0"`
}

// RetryOptions say how often a failed model call is repeated.
type RetryOptions struct {
	Enabled         bool    `json:"enabled"`
	MaxRetries      Int     `json:"maxRetries" shape:"min=0"`
	BaseDelayMs     float64 `json:"baseDelayMs" shape:"min=0"`
	MaxAgentDelayMs float64 `json:"maxAgentDelayMs" shape:"min=0"`
}

// SummaryPrompts replace the texts used for compaction; null keeps the built-in one.
type SummaryPrompts struct {
	System       *string `json:"system" shape:"null"`
	Instructions *string `json:"instructions" shape:"null"`
}

// FileChangePolicy says how an agent learns of changed files.
type FileChangePolicy string

// ShapeValues lists the policies.
func (FileChangePolicy) ShapeValues() []string { return []string{"on-demand", "notice", "diff"} }

// PromptSettings say what the system prompt is made of.
type PromptSettings struct {
	Base                string           `json:"base"`
	Append              []string         `json:"append"`
	ProjectInstructions bool             `json:"projectInstructions"`
	SkillCatalog        bool             `json:"skillCatalog"`
	Environment         bool             `json:"environment"`
	LearningContext     bool             `json:"learningContext"`
	Backgrounds         map[string]bool  `json:"backgrounds,omitzero"`
	FileChanges         FileChangePolicy `json:"fileChanges"`
}

// PromptSource is one part of an assembled system prompt.
type PromptSource struct {
	ID        string `json:"id"`
	Enabled   bool   `json:"enabled"`
	Content   string `json:"content,omitzero"`
	Dynamic   bool   `json:"dynamic,omitzero"`
	Revision  string `json:"revision,omitzero"`
	Reference string `json:"reference,omitzero"`
}

// AssembledPrompt is a system prompt and what it was made of.
type AssembledPrompt struct {
	System  string         `json:"system"`
	Sources []PromptSource `json:"sources"`
}

// SettingScope is where a setting applies: application, space or session.
type SettingScope struct {
	_         struct{} `shape:"union=application|space|session"`
	Kind      string   `json:"kind" shape:"kind"`
	SpaceID   ID       `json:"spaceId" shape:"in=space|session"`
	SessionID ID       `json:"sessionId" shape:"in=session"`
}

// MarshalJSONTo writes the members of the kind; members of another kind are an error.
func (s SettingScope) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalUnion(enc, &s)
}

// Validate reports the first departure from the wire contract.
func (s SettingScope) Validate() error { return validate(s) }

// Scope gives the subscription scope of the same place.
func (s SettingScope) Scope() Scope { return Scope{SpaceID: s.SpaceID, SessionID: s.SessionID} }

// SettingWord is a source of a value that is no scope.
type SettingWord string

// Sources that are no scope.
const (
	SettingDefault SettingWord = "default"
	SettingRequest SettingWord = "request"
)

// ShapeValues lists the words.
func (SettingWord) ShapeValues() []string { return []string{"default", "request"} }

// SettingOrigin is where a value came from: a scope, or a word. Exactly one is set.
type SettingOrigin struct {
	_     struct{} `shape:"choice"`
	Scope *SettingScope
	Word  *SettingWord
}

// MarshalJSONTo writes the one that is set.
func (o SettingOrigin) MarshalJSONTo(enc *jsontext.Encoder) error {
	return shape.MarshalChoice(enc, &o)
}

// UnmarshalJSONFrom reads either.
func (o *SettingOrigin) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return shape.UnmarshalChoice(dec, o)
}

// Validate reports the first departure from the wire contract.
func (o SettingOrigin) Validate() error { return validate(o) }

// SettingSource says where the value of one setting came from.
type SettingSource struct {
	Namespace string        `json:"namespace"`
	Key       string        `json:"key"`
	Source    SettingOrigin `json:"source"`
}
