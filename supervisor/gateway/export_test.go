package gateway

// Named is a thing of a server.
type Named struct{ Server, Name string }

// ShowNames returns the names that a gateway of this name shows.
func ShowNames(gateway string, prefix Prefix, all []Named) []string {
	g := &Gateway{naming: namingFor(gateway)}
	own := make([]named, len(all))
	for i, n := range all {
		own[i] = named{n.Server, n.Name}
	}
	return g.namesOf(prefix, own)
}
