// The page of one dashboard: it runs the queries of its panels, and draws the panels with Grafana's components.
import { createRoot } from 'react-dom/client';
import {
  applyFieldOverrides, createTheme, dateTime, FieldConfigOptionsRegistry, FieldType, getDisplayValueAlignmentFactors, getFieldDisplayValues,
  identityOverrideProcessor, ThemeContext, toDataFrame,
} from '@grafana/data';
import { BigValue, GlobalStyles, PanelChrome, TimeSeries } from '@grafana/ui';

const { dashboard, prometheus, width, start, end } = window.picture;
const theme = createTheme({ colors: { mode: 'light' } });
const timeZone = 'utc';
const timeRange = { from: dateTime(start * 1000), to: dateTime(end * 1000), raw: { from: dateTime(start * 1000), to: dateTime(end * 1000) } };

// The sizes of Grafana's grid in pixels.
const [columns, row, gap] = [24, 30, 8];
const column = (width - (columns + 1) * gap) / columns;
const length = (n, cell) => n * cell + (n - 1) * gap;
const scrape = 5; // seconds
const interval = Math.max(scrape, Math.ceil((end - start) / 1000));

// The variables have the values that Grafana gives them: all instances, and the rate interval of its Prometheus data source.
const substitute = (expr) => expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', `${Math.max(interval + scrape, 4 * scrape)}s`);

// The defaults of panels by type. The dashboards may set all of these, for a panel or for single series.
const line = {
  drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, lineStyle: { fill: 'solid' }, fillOpacity: 0, gradientMode: 'none',
  showPoints: 'auto', pointSize: 5, spanNulls: false, axisPlacement: 'auto', axisGridShow: true, axisSoftMin: undefined, axisSoftMax: undefined,
  scaleDistribution: { type: 'linear' }, hideFrom: { viz: false, legend: false, tooltip: false },
};
const defaults = { stat: { color: { mode: 'thresholds' } }, timeseries: { color: { mode: 'palette-classic' }, custom: line } };
const setting = (path, isCustom) => ({
  id: isCustom ? `custom.${path}` : path, name: path, path, isCustom, process: identityOverrideProcessor,
  shouldApply: ({ type }) => type === FieldType.number,
});
const settings = ['color', 'decimals', 'displayName', 'max', 'min', 'noValue', 'thresholds', 'unit'].map((path) => setting(path, false));
const fieldConfigRegistry = new FieldConfigOptionsRegistry(() => settings.concat(Object.keys(line).map((path) => setting(path, true))));
const asWritten = { replaceVariables: (text) => text, theme, timeZone };

function withConfig({ type, fieldConfig }, data) {
  const own = { ...defaults[type], ...fieldConfig.defaults, custom: { ...defaults[type].custom, ...fieldConfig.defaults.custom } };
  return applyFieldOverrides({ ...asWritten, data, fieldConfig: { defaults: own, overrides: fieldConfig.overrides }, fieldConfigRegistry });
}

// query returns the frames of a query, one for each series. A value that is missing or no number is null, and makes a gap in the line.
async function query(target) {
  const from = Math.ceil(start / interval) * interval;
  const parameters = new URLSearchParams({ query: substitute(target.expr), start: from, end, step: interval });
  const answer = await (await fetch(`${prometheus}/api/v1/query_range?${parameters}`)).json();
  if (answer.status !== 'success') {
    throw new Error(`${target.expr}: ${answer.error}`);
  }
  const times = Array.from({ length: Math.floor((end - from) / interval) + 1 }, (_, step) => from + step * interval);
  return answer.data.result.map(({ metric, values }) => {
    const at = new Map(values.filter(([, value]) => Number.isFinite(Number(value))).map(([time, value]) => [time, Number(value)]));
    const displayNameFromDS = target.legendFormat.replace(/{{\s*(\w+)\s*}}/g, (_, label) => metric[label] ?? '');
    return toDataFrame({
      refId: target.refId,
      fields: [
        { name: 'Time', type: FieldType.time, values: times.map((time) => time * 1000) },
        { name: 'Value', type: FieldType.number, labels: metric, config: { displayNameFromDS }, values: times.map((time) => at.get(time) ?? null) },
      ],
    });
  });
}

function Stat({ panel, frames, width, height }) {
  const { reduceOptions, colorMode, graphMode = 'area' } = panel.options;
  const values = getFieldDisplayValues({
    ...asWritten, data: frames, reduceOptions, fieldConfig: panel.fieldConfig, sparkline: graphMode !== 'none',
  });
  const [{ display, sparkline }] = values;
  return <BigValue value={display} sparkline={sparkline && { ...sparkline, timeRange }} colorMode={colorMode} graphMode={graphMode} justifyMode="auto"
    textMode="auto" count={values.length} alignmentFactors={getDisplayValueAlignmentFactors(values)} width={width} height={height} theme={theme} />;
}

function Panel({ panel, frames }) {
  const { x, y, w, h } = panel.gridPos;
  const size = { width: length(w, column), height: length(h, row) };
  const Content = panel.type === 'stat' ? Stat : Lines;
  return (
    <div style={{ position: 'absolute', left: gap + x * (column + gap), top: y * (row + gap) }}>
      <PanelChrome title={panel.title} description={panel.description} padding={panel.type === 'stat' ? 'none' : 'md'} {...size}>
        {(width, height) => <Content panel={panel} frames={frames} width={width} height={height} />}
      </PanelChrome>
    </div>
  );
}

function Lines({ frames, width, height }) {
  return <TimeSeries frames={frames} width={width} height={height} timeRange={timeRange} timeZone={timeZone}
    legend={{ showLegend: true, displayMode: 'list', placement: 'bottom', calcs: [] }} />;
}

async function main() {
  const panels = await Promise.all(dashboard.panels.map(async (panel) => {
    const frames = withConfig(panel, (await Promise.all(panel.targets.map(query))).flat());
    if (frames.length === 0) {
      console.error(`no data: ${panel.title}`);
    }
    return { panel, frames };
  }));
  const bottom = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));
  document.body.style.margin = 0;
  createRoot(document.querySelector('#root')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <div style={{ background: theme.colors.background.canvas, width, height: 44 + bottom * (row + gap) }}>
        <div style={{ height: 44, padding: '10px 16px', fontSize: 18 }}>{dashboard.title}</div>
        <div style={{ position: 'relative' }}>{panels.map((props) => <Panel key={props.panel.title} {...props} />)}</div>
      </div>
    </ThemeContext.Provider>,
  );
}

main().catch((err) => console.error('failed:', err));
