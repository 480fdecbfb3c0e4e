// Formats numbers with units, as crates/diagnosis/src/quantity.rs does.

export function time(ns: number): string {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 1e6) return `${digits(ns / 1e3)} µs`;
  if (size < 1e9) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

/** A point in time to the nanosecond: `937.123456 ms`. */
export function moment(ns: number): string {
  return at(ns, 1);
}

/** A point in time on a scale with a tick every `step` nanoseconds, with enough decimals to distinguish the ticks. */
export function at(ns: number, step: number): string {
  const size = Math.abs(ns);
  const [unit, length] = size < 1e3 ? ['ns', 1] : size < 1e6 ? ['µs', 1e3] : size < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  const decimals = Math.max(0, Math.ceil(Math.log10(length / step) - 1e-9));
  const text = (ns / length).toFixed(Math.min(9, decimals));
  return `${text.includes('.') ? text.replace(/0+$/, '').replace(/\.$/, '') : text} ${unit}`;
}

export function bytes(count: number): string {
  if (count < 1e3) return `${Math.round(count)} B`;
  if (count < 1e6) return `${digits(count / 1e3)} kB`;
  if (count < 1e9) return `${digits(count / 1e6)} MB`;
  return `${digits(count / 1e9)} GB`;
}

/** Bytes per nanosecond equal gigabytes per second. */
export function rate(gbps: number): string {
  return `${digits(gbps)} GB/s`;
}

export function count(n: number): string {
  return n.toLocaleString('en-US');
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size < 0.0005) return '0';
  if (size < 0.9995) return value.toFixed(3);
  if (size < 9.995) return value.toFixed(2);
  if (size < 99.95) return value.toFixed(1);
  return value.toFixed(0);
}
