package bugs

// Unseen holds the bugs that neither 200 random days nor the unit tests of their package find, by name, with the reason. They
// are listed so that the table does not claim to be complete; a bug found by neither that is not here fails the run.
var Unseen = map[string]string{
	"drain-of-the-dead": "The calls of a connection end when it dies, so that its gate is drained in the same instant. Only a " +
		"function that was given to Gate.Do and does not return would be waited for, and there is none.",
	"sleep-woken-as-before": "The wall clock of a test cannot be set apart from the monotonic one, which is how a sleep is seen. What " +
		"follows from a sleep is tested by TestSleepIsNoticed.",
	"short-sleep-unnoticed": "As sleep-woken-as-before: how long a sleep has to be is seen by nobody whose clocks agree.",
}
