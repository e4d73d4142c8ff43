"""Does a model know which models exist?"""
