// Searching in rows: their starts and ends both rise.

/** The first place in `values` from `from` on whose value is greater than `limit`. */
export function firstAbove(values: Float64Array, limit: number, from = 0): number {
  let low = from;
  let high = values.length;
  // What is looked for is mostly near.
  let reach = 1;
  while (low + reach < high && values[low + reach] <= limit) {
    low += reach;
    reach *= 2;
  }
  high = Math.min(high, low + reach + 1);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first place whose value is not less than `limit`. */
export function firstFrom(values: Float64Array, limit: number, from = 0): number {
  let low = from;
  let high = values.length;
  let reach = 1;
  while (low + reach < high && values[low + reach] < limit) {
    low += reach;
    reach *= 2;
  }
  high = Math.min(high, low + reach + 1);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
