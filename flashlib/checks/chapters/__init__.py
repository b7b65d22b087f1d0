"""What each chapter asks, a folder for each, named as `flashlib.chapters` names it:

exercises*.py   how the answers to its exercises are examined
mistakes.txt    the known mistakes: ids, sentences, and what makes them, below the right programs that they edit
questions.py    QUESTIONS, to be predicted before a cell is run
solutions.py    a solution of each exercise, as a learner would write it
"""
