"""How good a trained model is on benchmarks: suites, simulated users, results, comparisons."""
