"""Which answer came from whom, sampled together with the factors: Gibbs' method over couplings and normal factors."""
