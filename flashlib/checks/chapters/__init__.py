"""The exercises and questions of each chapter, in a folder with its name in `flashlib.chapters`:

exercises*.py   how the answers to its exercises are examined
mistakes.txt    the known mistakes: ids, sentences, and edits that make them, below the right programs
questions.py    QUESTIONS, to be predicted before a cell is run
solutions*.py   a solution of each exercise, as a learner would write it
"""
