"""What a reply says, whatever was asked: thinking set apart, yes and no, letters, numbers, JSON."""
