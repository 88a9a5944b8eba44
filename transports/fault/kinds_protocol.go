package fault

import "encoding/json"

// protocolKinds break the handshake and the words of an era.
func protocolKinds() []Kind {
	return []Kind{
		{
			Name: "era-flip", Does: "the server knows the handshake of its era no more", On: handshakeMethods, Where: everywhere,
			effect: effect{in: func(a *effectContext) string {
				a.replaceAnswer("error", []byte(`{"code":-32601,"message":"Method not found"}`))
				return "the handshake is a method that it does not know"
			}},
		},
		{
			Name: "wrong-version", Does: "the handshake agrees on a version that nobody speaks", On: handshakeMethods, Where: everywhere,
			Params: []Param{textParam("version", "1999-12-31", "the version")},
			effect: effect{in: func(a *effectContext) string {
				version := quoteJSON(a.rule.values.text("version"))
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
		{
			Name: "modern-breach", Does: "a rule of the modern era is broken", Where: everywhere,
			Params: []Param{choiceParam("what", "result-type", "which: results without a type, notifications with another subscription's id, "+
				"one before the acknowledgement, the subscription ends without a response",
				"result-type|subscription-id|early-notification|listen-closed")},
			effect: effect{in: breakModernRule, serverMessages: true, everyMessage: true},
		},
	}
}

const subscriptionID = "io.modelcontextprotocol/subscriptionId"

func breakModernRule(a *effectContext) string {
	switch a.rule.values.text("what") {
	case "result-type":
		if memberValue(readObject(memberValue(readObject(a.m.body), "result")), "resultType") == nil || !a.changeResult(constantValue(""), "resultType") {
			return ""
		}
		return "the result has no type"
	case "subscription-id":
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
	case "early-notification":
		if a.m.method != "notifications/subscriptions/acknowledged" {
			return ""
		}
		a.disposition.Before = append(a.disposition.Before, listChanged)
		return "a notification comes before the acknowledgement"
	case "listen-closed":
		if a.m.method != "notifications/subscriptions/acknowledged" {
			return ""
		}
		a.disposition.Cutting = true
		return "the subscription ends without a response"
	}
	return ""
}
