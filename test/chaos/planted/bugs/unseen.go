package bugs

// Unseen holds the bugs that neither 200 random days nor the unit tests of their package find, by name, with the reason. They
// are listed so that the table does not claim to be complete; a bug found by neither that is not here fails the run.
var Unseen = map[string]string{
	"drain-of-the-dead": "The calls of a connection end when it dies, so that its gate is drained in the same instant. Only a " +
		"function that was given to Gate.Do and does not return would be waited for, and there is none.",
	"gates-of-the-dead": "The calls in flight end with their connection, in one instant, and give their turns to those that wait, who then find " +
		"that the session has ended; the server's actor closes the gate besides. Only a call that outlives its connection would show it, and there is none.",
	"grant-beside-connection": "A server asks for a start when its attempt has released everything, and the release is told to the " +
		"supervisor before it is told to the server's actor; a successor is spawned only when nothing is held. The check is for a mistake in these.",
	"new-time-untold": "The time of the next attempt changes only together with the word that says what is planned. A wake brings the attempt " +
		"forward in the gate and leaves the status as it is.",
	"sleep-woken-as-before": "The wall clock of a test cannot be set apart from the monotonic one, which is how a sleep is seen. What " +
		"follows from a sleep is tested by TestSleepIsNoticed.",
	"starts-while-closing":  "Close sends each server its end before the gate can grant a start, so that the server declines it.",
	"unlisted-for-ever":     "The failure is shown of a connected server only, and a server is connected only after a list, which has replaced or removed it.",
	"short-sleep-unnoticed": "As sleep-woken-as-before: how long a sleep has to be is seen by nobody whose clocks agree.",
}
