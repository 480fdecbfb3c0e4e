// Search in rows, whose starts and ends are both sorted.

/** The first index at or after `from` whose value is greater than `limit`. */
export function firstAbove(values: Float64Array, limit: number, from = 0): number {
  return firstPast(values, limit, from, true);
}

/** The first index whose value is at least `limit`. */
export function firstFrom(values: Float64Array, limit: number, from = 0): number {
  return firstPast(values, limit, from, false);
}

/** The first index after all values below `limit`, and after those equal to it if `equalIsBefore`. */
function firstPast(values: Float64Array, limit: number, from: number, equalIsBefore: boolean): number {
  const isBefore = (value: number) => value < limit || (equalIsBefore && value === limit);
  let low = from;
  let high = values.length;
  // The result is usually close to `from`.
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
