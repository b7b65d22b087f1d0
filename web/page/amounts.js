// Amounts in words.

/** @param {number} bytes */
export const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
