package drills

// all are the drills. A new one goes to the end.
var all = []drill{
	{"ask", playAsk},
	{"allowances", playAllowances},
	{"forms", playForms},
	{"instances", playInstances},
	{"views", playViews},
	{"levels", playLevels},
	{"watches", playWatches},
	{"commands", playCommands},
	{"agent questions", playAgentQuestions},
	{"task questions", playTaskQuestions},
	{"offers", playOffers},
	{"queue", playQueue},
	{"timeouts", playTimeouts},
	{"lists", playLists},
	{"restarts", playRestarts},
	{"endings", playEndings},
	{"rules", playRules},
	{"tasks", playTasks},
	{"followed", playFollowed},
	{"record", playRecord},
	{"resting", playResting},
	{"repeats", playRepeats},
	{"slow watches", playSlowWatches},
	{"drains", playDrains},
}
