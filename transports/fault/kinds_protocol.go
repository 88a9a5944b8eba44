package fault

import "encoding/json"

// protocolKinds break the handshake and the words of an era.
func protocolKinds() []Kind {
	return []Kind{
		{
			Name: "era-flip", Does: "the server knows the handshake of its era no more", On: handshakes, Where: everywhere,
			effect: effect{in: func(a *act) string {
				a.answerWith("error", []byte(`{"code":-32601,"message":"Method not found"}`))
				return "the handshake is a method that it does not know"
			}},
		},
		{
			Name: "wrong-version", Does: "the handshake agrees on a version that nobody speaks", On: handshakes, Where: everywhere,
			Params: []Param{text("version", "1999-12-31", "the version")},
			effect: effect{in: func(a *act) string {
				version := quote(a.rule.values.text("version"))
				if a.m.method == "initialize" {
					if !a.result(value(string(version)), "protocolVersion") {
						return ""
					}
				} else if !a.result(value(string(array([]json.RawMessage{version}))), "supportedVersions") {
					return ""
				}
				return "the version is one that nobody speaks"
			}},
		},
		{
			Name: "modern-breach", Does: "a rule of the modern era is broken", Where: everywhere,
			Params: []Param{words("what", "result-type", "which: results without a type, notifications with another subscription's id, "+
				"one before the acknowledgement, the subscription ends without a response",
				"result-type|subscription-id|early-notification|listen-closed")},
			effect: effect{in: breach, own: true, passing: true},
		},
	}
}

const subscriptionID = "io.modelcontextprotocol/subscriptionId"

func breach(a *act) string {
	switch a.rule.values.text("what") {
	case "result-type":
		if get(object(get(object(a.m.body), "result")), "resultType") == nil || !a.result(value(""), "resultType") {
			return ""
		}
		return "the result has no type"
	case "subscription-id":
		changed := false
		a.change(func(raw json.RawMessage) json.RawMessage {
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
		a.fate.Before = append(a.fate.Before, listChanged)
		return "a notification comes before the acknowledgement"
	case "listen-closed":
		if a.m.method != "notifications/subscriptions/acknowledged" {
			return ""
		}
		a.fate.Cutting = true
		return "the subscription ends without a response"
	}
	return ""
}
