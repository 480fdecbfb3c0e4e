// The dashboard of deploy/ against Grafana's own types: `@grafana/schema` declares what Grafana reads. TypeScript refuses members that it does
// not have, values of another type, and words that are none of an enumeration.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const web = fileURLToPath(new URL('..', import.meta.url));
const root = join(web, '..');
const folder = join(root, 'target', 'grafana');
const schema = join(web, 'node_modules', '@grafana', 'schema', 'dist', 'types');
const dashboard = () =>
  JSON.parse(readFileSync(join(root, 'deploy', 'grafana', 'dashboards', 'busbound.json'), 'utf8'));

/** Where the options of each kind of panel are declared. */
const PANELS = { timeseries: 'timeseries', stat: 'stat', table: 'table', 'state-timeline': 'statetimeline' };

/** Of these, stat panels have no options per field. */
const WITHOUT_CUSTOM = ['stat'];

/** In JSON, a member of an enumeration is its text. What belongs to the Prometheus data source, the schema leaves open. */
const HEAD = `
import type { AnnotationQuery, Dashboard, VariableModel } from '@grafana/schema';
type Plain<T> = T extends string ? \`\${T}\` : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Part<T> = T extends (infer U)[] ? Part<U>[] : T extends object ? { [K in keyof T]?: Part<T[K]> } : T;
type Variable = Plain<VariableModel> & { definition?: string };
type Annotation = Plain<AnnotationQuery> & { expr?: string; step?: string; titleFormat?: string; textFormat?: string };
type Checked = Omit<Plain<Dashboard>, 'templating' | 'annotations'> & {
  templating: { list: Variable[] };
  annotations: { list: Annotation[] };
};
`;

/** What TypeScript says about a dashboard. */
function complaints(given, name) {
  const lines = [HEAD];
  for (const [kind, file] of Object.entries(PANELS)) {
    const from = join(schema, 'raw', 'composable', file, 'panelcfg', 'x', 'types.gen');
    const alias = kind.replace('-', '_');
    lines.push(`import type * as ${alias} from ${JSON.stringify(from)};`);
  }
  const panels = given.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
  for (const panel of panels.filter((one) => one.type !== 'row')) {
    assert.ok(PANELS[panel.type], `no types for panels of the kind ${panel.type}`);
    const of = panel.type.replace('-', '_');
    const custom = panel.fieldConfig?.defaults?.custom ?? {};
    // Grafana fills in what is absent.
    lines.push(`const options${panel.id}: Part<Plain<${of}.Options>> = ${JSON.stringify(panel.options ?? {})};`);
    const type = WITHOUT_CUSTOM.includes(panel.type) ? 'Record<string, never>' : `Part<Plain<${of}.FieldConfig>>`;
    lines.push(`const custom${panel.id}: ${type} = ${JSON.stringify(custom)};`);
  }
  lines.push(`const dashboard: Checked = ${JSON.stringify(given, null, 1)};`);
  mkdirSync(join(folder, name), { recursive: true });
  const compilerOptions = {
    ...{ target: 'ES2022', module: 'ESNext', moduleResolution: 'bundler', strict: true, noEmit: true, types: [] },
    ...{ skipLibCheck: true, paths: { '@grafana/schema': [join(schema, 'index.d.ts')] } },
  };
  writeFileSync(join(folder, name, 'dashboard.ts'), lines.join('\n'));
  writeFileSync(join(folder, name, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['dashboard.ts'] }));
  const tsc = join(web, 'node_modules', 'typescript', 'bin', 'tsc');
  const done = spawnSync(process.execPath, [tsc, '-p', join(folder, name)], { encoding: 'utf8' });
  return done.stdout + done.stderr;
}

test("the dashboard fits Grafana's types", () => {
  assert.equal(complaints(dashboard(), 'given'), '');
});

test('a mistake in the dashboard is found', () => {
  const mistakes = {
    member: (one) => (one.refreshes = '5s'),
    panel: (one) => (one.panels[0].gridpos = {}),
    threshold: (one) => (one.panels.find((p) => p.fieldConfig?.defaults?.thresholds).fieldConfig.defaults.thresholds.mode = 'relative'),
    option: (one) => (one.panels.find((p) => p.type === 'timeseries').options.legend.displaymode = 'list'),
    custom: (one) => (one.panels.find((p) => p.type === 'timeseries').fieldConfig.defaults.custom.lineWidth = 'thick'),
  };
  for (const [name, make] of Object.entries(mistakes)) {
    const given = dashboard();
    make(given);
    assert.match(complaints(given, name), /error TS/, name);
  }
});
