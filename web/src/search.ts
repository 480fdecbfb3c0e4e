// Searching in rows: their starts and ends both rise.

/** The first place in `values` from `from` on whose value is greater than `limit`. */
export function firstAbove(values: Float64Array, limit: number, from = 0): number {
  return firstPast(values, limit, from, true);
}

/** The first place whose value is not less than `limit`. */
export function firstFrom(values: Float64Array, limit: number, from = 0): number {
  return firstPast(values, limit, from, false);
}

/** The first place behind all values below `limit`, and those equal to it where they count as before it. */
function firstPast(values: Float64Array, limit: number, from: number, equalIsBefore: boolean): number {
  const isBefore = (value: number) => value < limit || (equalIsBefore && value === limit);
  let low = from;
  let high = values.length;
  // What is looked for is mostly near.
  let reach = 1;
  while (low + reach < high && isBefore(values[low + reach])) {
    low += reach;
    reach *= 2;
  }
  high = Math.min(high, low + reach + 1);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(values[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}
