"""FlashPlayer and ComparePlayers: recorded steps of a tiling, and the places they are played in."""
