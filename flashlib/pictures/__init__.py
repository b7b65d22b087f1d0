"""Still pictures: a canvas in pixels, its inks, and what the chapters and widgets draw with them."""
