package fault

import "encoding/json"

// protocolKinds are the faults in the handshake and in the rules of an era.
func protocolKinds() []Kind {
	return []Kind{
		// A server whose update dropped an era: a client that remembers the era must probe again. The error is that
		// of a method that the server does not know.
		{
			Name: "era-flip", Does: "the server knows the handshake of its era no more", On: handshakeMethods, Where: everywhere,
			effect: effect{in: func(a *effectContext) string {
				a.replaceAnswer("error", []byte(`{"code":-32601,"message":"Method not found"}`))
				return "the handshake is a method that it does not know"
			}},
		},
		// 2025-11-25: "If the client does not support the version in the server's response, it SHOULD disconnect."
		{
			Name: "wrong-version", Does: "the handshake agrees on a version that nobody speaks", On: handshakeMethods, Where: everywhere,
			Params: []Param{textParam("version", "1999-12-31", "the version")},
			effect: effect{in: func(a *effectContext) string {
				version := quoteJSON(a.rule.values.text("version"))
				// The two handshakes name the version in different members.
				if a.m.method == "initialize" {
					if !a.changeResult(constantValue(string(version)), "protocolVersion") {
						return ""
					}
				} else if !a.changeResult(constantValue(string(encodeArray([]json.RawMessage{version}))), "supportedVersions") {
					return ""
				}
				return "the version is one that nobody speaks"
			}},
		},
		// These breaches can be in any message of the modern era, so the effect looks at each and mostly does nothing.
		{
			Name: "modern-breach", Does: "a rule of the modern era is broken", Where: everywhere,
			Params: []Param{choiceParam("what", "result-type", "which: results without a type, notifications with another subscription's id, "+
				"one before the acknowledgement, the subscription ends without a response",
				"result-type|subscription-id|early-notification|listen-closed")},
			effect: effect{in: breakModernRule, serverMessages: true, everyMessage: true},
		},
	}
}

// subscriptionID is the key of _meta by which a notification of the modern era names its subscription.
const subscriptionID = "io.modelcontextprotocol/subscriptionId"

// breakModernRule breaks the rule of the modern era that the parameter "what" names, if this message gives occasion.
func breakModernRule(a *effectContext) string {
	switch a.rule.values.text("what") {
	// 2026-07-28 demands the member on every result, and lets a client treat an absent one as "complete". A result
	// that never had it is left alone.
	case "result-type":
		if memberValue(readObject(memberValue(readObject(a.m.body), "result")), "resultType") == nil || !a.changeResult(constantValue(""), "resultType") {
			return ""
		}
		return "the result has no type"
	// On stdio a client MUST use the id to find the subscription, and so must ignore this notification.
	case "subscription-id":
		// changeMember reports success also for a member that is not there, so changed says whether there was an id.
		changed := false
		a.changeMember(func(raw json.RawMessage) json.RawMessage {
			if raw == nil {
				return nil
			}
			changed = true
			return json.RawMessage(`"chaos-of-nobody"`)
		}, "params", "_meta", subscriptionID)
		if !changed {
			return ""
		}
		return "it carries the id of another subscription"
	// The acknowledgement must be the first message of a subscription.
	case "early-notification":
		if a.m.method != "notifications/subscriptions/acknowledged" {
			return ""
		}
		a.disposition.Before = append(a.disposition.Before, listChanged)
		return "a notification comes before the acknowledgement"
	// The end of the stream without a response is an unexpected disconnect, after which a client may subscribe again.
	case "listen-closed":
		if a.m.method != "notifications/subscriptions/acknowledged" {
			return ""
		}
		a.disposition.Cutting = true
		return "the subscription ends without a response"
	}
	return ""
}
