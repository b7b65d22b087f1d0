// The font of formulas in lines of text, which is in this file: made from bytes, it is there before the page is painted,
// and no line breaks anew when the whole font arrives.

const FONT = "FIRST"; // base64, by build.py

document.fonts.add(new FontFace("Course Maths First", Uint8Array.from(atob(FONT), (letter) => letter.charCodeAt(0))));
