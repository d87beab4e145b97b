package llm

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind sorts provider errors by what can be done about them.
type Kind string

const (
	KindAuth        Kind = "auth"            // the credential is missing, wrong or not allowed to do this
	KindRateLimited Kind = "rate_limited"    // too many requests; the same request works later
	KindOverloaded  Kind = "overloaded"      // the provider has no capacity at the moment
	KindQuota       Kind = "quota"           // a billing or plan limit; waiting does not help
	KindOverflow    Kind = "overflow"        // the request is longer than the model's context
	KindInvalid     Kind = "invalid_request" // the provider does not accept the request
	KindNotFound    Kind = "not_found"       // no such model or path
	KindRefused     Kind = "refused"         // the provider ended the answer (content filter, unknown stop reason)
	KindServer      Kind = "server"          // the provider has a fault of its own
	KindUnreachable Kind = "unreachable"     // no answer at all: address, network, certificate
	KindProtocol    Kind = "protocol"        // what came back is not a stream of this wire format
	KindInterrupted Kind = "interrupted"     // the stream broke off before its terminal event
	KindTimeout     Kind = "timeout"         // nothing arrived for too long
	KindAborted     Kind = "aborted"         // the caller's context ended
)

// Error is the only error that a [Provider] returns. No field holds a credential: the key is cut out of the provider's own
// words, and the URL has neither user information nor a query.
type Error struct {
	Provider   string
	URL        string // scheme://host/path; empty when no request could be made
	Status     int    // 0: no answer. 2xx: the error came inside the stream
	Words      string // the provider's own message, or the cause when there is none
	Kind       Kind
	Retryable  bool          // the same request may work later
	RetryAfter time.Duration // what the provider asked to wait; 0: nothing
	Keyless    bool          // the request carried no key
	Cause      error         // for errors.Is and errors.As; may be nil
}

// Code is the stable domain code: auth_required when logging in again may help, else provider.
func (e *Error) Code() string {
	if e.Kind == KindAuth {
		return "auth_required"
	}
	return "provider"
}

func (e *Error) Unwrap() error { return e.Cause }

// Error says who answered what, and what to do.
func (e *Error) Error() string {
	if e.Kind == KindAborted {
		return "the call to " + e.who() + " was stopped"
	}
	return e.summary() + " " + e.advice()
}

func (e *Error) who() string {
	if e.URL == "" {
		return e.Provider
	}
	return e.Provider + " at " + e.URL
}

// summary is the error without the advice.
func (e *Error) summary() string {
	var what string
	switch {
	case e.Kind == KindUnreachable:
		what = "cannot be reached: " + e.Words
	case e.Kind == KindProtocol:
		what = "did not answer with a valid stream: " + e.Words
	case e.Kind == KindInterrupted:
		what = "broke off its answer: " + e.Words
	case e.Kind == KindTimeout && e.Status < 300:
		what = "stopped answering: " + e.Words
	case e.Status == 0:
		what = "was not called: " + e.Words
	case e.Status < 300 && e.Kind == KindRefused:
		what = "ended the answer: " + e.Words
	case e.Status < 300:
		what = "reported an error while answering: " + e.Words
	case e.Words == "":
		what = fmt.Sprintf("answered %d %s", e.Status, http.StatusText(e.Status))
	default:
		what = fmt.Sprintf("answered %d: %s", e.Status, e.Words)
	}
	text := e.who() + " " + what
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "!") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}

func (e *Error) advice() string {
	switch e.Kind {
	case KindAuth:
		if e.Keyless {
			return "No API key is set for " + e.Provider + ": set one, for example in " + keyVariable(e.Provider) + "."
		}
		return "Check the API key for " + e.Provider + " (" + keyVariable(e.Provider) + ")."
	case KindRateLimited:
		if e.RetryAfter > 0 {
			return "Wait " + e.RetryAfter.Round(time.Second).String() + " and try again."
		}
		return "Wait a little and try again."
	case KindOverloaded, KindServer:
		return "Try again later, or use another model."
	case KindQuota:
		return "Check the plan and the balance of this account at the provider."
	case KindOverflow:
		return "The request is too long for this model: compact the session, or use a model with a larger context."
	case KindNotFound:
		return "Check the name of the model and the address of the connection."
	case KindRefused:
		return "Change the request, or use another model."
	case KindUnreachable:
		return "Check the address, and that the server is running."
	case KindProtocol:
		return "Check that the address belongs to a server of this kind."
	case KindInterrupted, KindTimeout:
		return "Check the network and the server, and try again."
	default:
		return "Check the model and the settings of the connection."
	}
}

// keyVariable is the environment variable that people usually keep a provider's key in.
func keyVariable(provider string) string {
	if provider == "google" {
		return "GEMINI_API_KEY"
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(provider))
	return name + "_API_KEY"
}
