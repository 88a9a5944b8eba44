package planted

// Unseen are bugs that neither 200 random days nor the unit tests of their package find, by name, and why not. They are here so
// that the table of what is seen does not look like all there is.
var Unseen = map[string]string{}
