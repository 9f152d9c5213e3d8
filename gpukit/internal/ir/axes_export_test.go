package ir

// FetchCost sets what it costs a worker to have a result of a table, so that
// tests take more out, and returns what it was.
func FetchCost(fetch, scalar int) (int, int) {
	a, b := costFetch, costScalar
	costFetch, costScalar = fetch, scalar
	return a, b
}
