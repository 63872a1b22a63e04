"""What a cell holds, and the noise that makes each cell differentially private."""
