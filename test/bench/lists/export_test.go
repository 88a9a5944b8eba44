package lists

// Definition is a tool as it stands in the list.
func Definition(i int) string { return toolDefinition(i, "x") }
