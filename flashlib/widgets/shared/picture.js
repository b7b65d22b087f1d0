// Pictures of numbers, a pixel each.

const [FILE, ABOUT] = [14, 108]; // bytes of the two headers
const MASKS = [0xff, 0xff00, 0xff0000, 0xff000000]; // of red, green, blue and alpha, in a pixel
const CHUNK = 0x4000; // bytes that are converted to text at a time

/**
 * A picture as an image in a style sheet, in the simplest format, BMP: a PNG from a canvas, which would be decoded again at
 * once, takes several times as long.
 * @param {Uint32Array} pixels as returned by `Colours.pixel`, from the top left; 0 is transparent
 * @param {number} width
 * @param {number} height
 */
export function pictureOf(pixels, width, height) {
  if (pixels.every((pixel) => pixel === 0)) return "none"; // browsers take such an image for one without an alpha mask
  const start = FILE + ABOUT;
  const bytes = new Uint8Array(start + 4 * width * height);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, 0x4d42, true); // "BM"
  view.setUint32(2, bytes.length, true);
  view.setUint32(10, start, true);
  view.setUint32(14, ABOUT, true);
  view.setInt32(18, width, true);
  view.setInt32(22, -height, true); // rows from the top
  view.setUint16(26, 1, true);
  view.setUint16(28, 32, true); // bits of a pixel
  view.setUint32(30, 3, true); // masks select the channels
  view.setUint32(34, 4 * width * height, true);
  MASKS.forEach((mask, k) => view.setUint32(54 + 4 * k, mask, true));
  view.setUint32(70, 0x73524742, true); // sRGB
  pixels.forEach((pixel, k) => view.setUint32(start + 4 * k, pixel, true));
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return `url(data:image/bmp;base64,${btoa(text)})`;
}
