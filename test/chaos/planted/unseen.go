package planted

// Unseen are bugs that 150 random days did not find. They are here so that the table of what is seen does not look like all
// there is: the first needs a grant and a disable in one instant, the second a repetition that is refused before it is sent,
// and after a wake I7 and I13 only widen what they allow.
var Unseen = []Bug{
	{
		Name: "grant-after-disable", File: "actors/lifecycle/step.go",
		Old:   "if !m.Asked || epoch <= m.Epoch {",
		New:   "if epoch <= m.Epoch {",
		Finds: []string{"I8"}, Why: "a start that was on its way brings a disabled server back",
	},
	{
		Name: "first-try-forgotten", File: "actors/call.go",
		Old:   "\t\tagain = stillUnknown(again)\n",
		New:   "\t\t_ = stillUnknown\n",
		Finds: []string{"I3"}, Why: "a call that ran is told as not sent, and the caller sends it again",
	},
	{
		Name: "wake-unheard", File: "supervisor/supervisor.go",
		Old:   "at.Before(st.NextAt) {",
		New:   "at.Before(st.NextAt) && false {",
		Finds: []string{"I7", "I13", "I11"}, Why: "after a sleep nothing comes back before its old timer",
	},
	{
		Name: "wake-ignores-retry-after", File: "supervisor/supervisor.go",
		Old:   "if !st.Asked || st.NextAt.IsZero() || st.Cause != nil && st.Cause.RetryAfter > 0 {",
		New:   "if !st.Asked || st.NextAt.IsZero() {",
		Finds: []string{"I7"}, Why: "a server that asked for time is tried when a laptop is opened",
	},
}
