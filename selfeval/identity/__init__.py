"""Identity: which model does a model say it is, asked plainly and under pressure?"""
