"""What a reply says, to any question: thinking set apart, yes and no, letters, numbers, JSON."""
