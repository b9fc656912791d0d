// Draws the charts of the report from the JSON that the page carries. Without this script every number is in a table.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('account').textContent);
  const dataflow = bbRequire('vega-dataflow');
  for (const name of ['vega-transforms', 'vega-view-transforms', 'vega-encode']) {
    dataflow.transforms = Object.assign(dataflow.transforms, bbRequire(name));
  }
  const { parse } = bbRequire('vega-parser');
  const { View } = bbRequire('vega-view');

  for (const account of data.depths) {
    const { fields, rows } = account.steps;
    account.steps = rows.map((row) => Object.fromEntries(row.map((cell, index) => [fields[index], cell])));
  }

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = () => ({
    ink: css('--ink'), soft: css('--soft'), line: css('--line'), paper: css('--paper'), shade: css('--shade'),
    floor: css('--floor'), lost: css('--lost'), gap: css('--gap'), good: css('--good'), mark: css('--mark'),
  });
  const us = (ns) => ns / 1e3;
  const digits = (value) => (Math.abs(value) < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en'));
  const nameOf = (row) => (row.format && row.format !== 'F32' ? row.role + ' ' + row.format : row.role);
  const value = (v) => ({ value: v });

  function config(c) {
    const text = { labelColor: c.ink, titleColor: c.ink, labelFont: 'system-ui, sans-serif', titleFont: 'system-ui, sans-serif' };
    return {
      background: null,
      axis: Object.assign({ gridColor: c.line, domainColor: c.soft, tickColor: c.soft, labelFontSize: 12, titleFontSize: 12,
        titleFontWeight: 400, labelLimit: 400 }, text),
      axisX: { labelFlush: true, labelOverlap: 'parity' },
      legend: Object.assign({ labelFontSize: 12, titleFontSize: 12 }, text),
    };
  }

  function base(c, width, height) {
    return { width, height, padding: 4, autosize: { type: 'fit', contains: 'padding' }, config: config(c) };
  }

  const label = (c, encode) => ({
    type: 'text', interactive: false,
    from: encode.from,
    encode: { enter: Object.assign({ fill: value(c.ink), fontSize: value(12), font: value('system-ui, sans-serif'), baseline: value('middle') }, encode.enter) },
  });

  // Floor, what each part loses, gaps, unaccounted, token: each bar begins where the one before ended.
  function waterfall(account, c, width) {
    const token = account.token;
    let at = 0;
    const rows = [];
    const add = (name, ns, kind) => {
      rows.push({ name, from: us(at), to: us(at + ns), us: us(ns), kind, text: digits(us(ns)) });
      at += ns;
    };
    add('floor', token.floor_ns, 'floor');
    const lost = account.parts.slice().sort((a, b) => b.excess_ns - a.excess_ns);
    const shown = lost.filter((part) => Math.abs(part.excess_ns) >= 0.002 * token.now_ns).slice(0, 9);
    for (const part of shown) add('+ ' + nameOf(part), part.excess_ns, 'lost');
    const rest = token.lost_ns - shown.reduce((sum, part) => sum + part.excess_ns, 0);
    add('+ other parts', rest, 'lost');
    add('+ waiting', token.wait_ns, 'gap');
    add('+ host', token.host_ns, 'gap');
    add('+ unaccounted', token.unaccounted_ns, 'gap');
    rows.push({ name: '= token', from: 0, to: us(token.now_ns), us: us(token.now_ns), kind: 'token', text: digits(us(token.now_ns)) });
    for (const row of rows) row.right = Math.max(row.from, row.to);
    return Object.assign(base(c, width, 26 * rows.length + 50), {
      data: [{ name: 'rows', values: rows }],
      scales: [
        { name: 'x', type: 'linear', range: 'width', nice: true, zero: true, domain: [0, us(token.now_ns) * 1.14] },
        { name: 'y', type: 'band', range: 'height', padding: 0.25, domain: rows.map((row) => row.name) },
        { name: 'fill', type: 'ordinal', domain: ['floor', 'lost', 'gap', 'token'], range: [c.floor, c.lost, c.gap, c.ink] },
      ],
      axes: [
        { orient: 'bottom', scale: 'x', grid: true, title: 'µs', tickCount: Math.max(2, width / 130) },
        { orient: 'left', scale: 'y', ticks: false, domain: false },
      ],
      marks: [
        { type: 'rect', from: { data: 'rows' }, encode: { enter: {
          y: { scale: 'y', field: 'name' }, height: { scale: 'y', band: 1 },
          x: { scale: 'x', field: 'from' }, x2: { scale: 'x', field: 'to' },
          fill: { scale: 'fill', field: 'kind' }, tooltip: { signal: "datum.name + ': ' + datum.text + ' µs'" } } } },
        label(c, { from: { data: 'rows' }, enter: {
          y: { scale: 'y', field: 'name', band: 0.5 }, x: { scale: 'x', field: 'right', offset: 4 }, text: { field: 'text' } } }),
      ],
    });
  }

  // What each cure gives back at most.
  function recoverable(account, c, width) {
    const narrow = width < 560;
    const rows = account.causes.slice(0, 12).map((cause) => ({
      name: (cause.role ? nameOf(cause) : 'the token') + ' · ' + cause.kind,
      us: us(cause.recoverable_ns),
      finding: cause.finding,
      text: digits(us(cause.recoverable_ns)) + ' µs' + (narrow ? '' : ', ' + (100 * cause.recoverable_ns / account.token.now_ns).toFixed(1) + ' %'),
    }));
    return Object.assign(base(c, width, 26 * Math.max(1, rows.length) + 50), {
      data: [{ name: 'rows', values: rows }],
      scales: [
        { name: 'x', type: 'linear', range: 'width', zero: true, domain: [0, Math.max(1, ...rows.map((row) => row.us)) * (narrow ? 1.5 : 1.3)] },
        { name: 'y', type: 'band', range: 'height', padding: 0.25, domain: rows.map((row) => row.name) },
      ],
      axes: [
        { orient: 'bottom', scale: 'x', grid: true, title: narrow ? 'µs given back at most' : 'µs of a token that the cure gives back at most', tickCount: Math.max(2, width / 150) },
        { orient: 'left', scale: 'y', ticks: false, domain: false, labelLimit: Math.max(160, width * 0.6) },
      ],
      marks: [
        { type: 'rect', from: { data: 'rows' }, encode: { enter: {
          y: { scale: 'y', field: 'name' }, height: { scale: 'y', band: 1 }, x: { scale: 'x', value: 0 }, x2: { scale: 'x', field: 'us' },
          fill: { signal: "datum.finding ? '" + c.lost + "' : '" + c.paper + "'" }, stroke: value(c.lost),
          tooltip: { signal: "datum.name + (datum.finding ? ': a finding' : ': no finding')" } } } },
        label(c, { from: { data: 'rows' }, enter: {
          y: { scale: 'y', field: 'name', band: 0.5 }, x: { scale: 'x', field: 'us', offset: 4 }, text: { field: 'text' } } }),
      ],
    });
  }

  // Operations a second over operations a byte; the roof is what the memory gives and, where it is known, the peak.
  function roofline(account, c, width) {
    const bandwidth = account.read_bandwidth_gb_s;
    const peak = data.peak_gop_s || 0;
    const rows = account.parts.filter((part) => part.flops > 0).map((part) => ({
      name: nameOf(part), x: part.flops / part.bytes, y: part.flops / part.now_ns, share: part.share,
      text: nameOf(part), tip: nameOf(part) + ': ' + digits(part.bytes / part.now_ns) + ' GB/s of ' + digits(bandwidth),
    }));
    // Names that would lie on one another go on lines of their own, from the highest point down.
    rows.sort((a, b) => b.y - a.y);
    const left = Math.min(0.5, ...rows.map((row) => row.x / 2)), right = Math.max(64, ...rows.map((row) => row.x * 4));
    const roof = [];
    for (let i = 0; i <= 60; ++i) {
      const x = left * (right / left) ** (i / 60);
      roof.push({ x, y: peak > 0 ? Math.min(peak, bandwidth * x) : bandwidth * x });
    }
    const top = Math.max(...roof.map((p) => p.y)) * 1.6, bottom = Math.min(...rows.map((row) => row.y), bandwidth * left) / 2;
    const height = 360;
    const pixel = (y) => height * (1 - Math.log(y / bottom) / Math.log(top / bottom));
    let last = -Infinity;
    for (const row of rows) {
      row.label = Math.max(pixel(row.y), last + 15);
      last = row.label;
    }
    return Object.assign(base(c, width, height + 50), {
      data: [{ name: 'rows', values: rows }, { name: 'roof', values: roof }],
      scales: [
        { name: 'x', type: 'log', range: 'width', domain: [left, right], nice: false },
        { name: 'y', type: 'log', range: 'height', domain: [bottom, top], nice: false },
      ],
      axes: [
        { orient: 'bottom', scale: 'x', title: 'operations a byte', format: '~g', tickCount: Math.max(3, width / 160) },
        { orient: 'left', scale: 'y', grid: true, title: 'billion operations a second', format: '~s', tickCount: 5 },
      ],
      marks: [
        { type: 'line', from: { data: 'roof' }, encode: { enter: {
          x: { scale: 'x', field: 'x' }, y: { scale: 'y', field: 'y' }, stroke: value(c.ink), strokeWidth: value(2) } } },
        { type: 'symbol', from: { data: 'rows' }, encode: { enter: {
          x: { scale: 'x', field: 'x' }, y: { scale: 'y', field: 'y' }, size: { signal: '60 + 500 * datum.share' },
          fill: value(c.lost), fillOpacity: value(0.65), stroke: value(c.ink), tooltip: { field: 'tip' } } } },
        { type: 'rule', from: { data: 'rows' }, encode: { enter: {
          x: { scale: 'x', field: 'x' }, y: { scale: 'y', field: 'y' }, x2: { scale: 'x', field: 'x', offset: 26 },
          y2: { signal: 'datum.label * height / ' + height }, stroke: value(c.soft), strokeWidth: value(0.7) } } },
        label(c, { from: { data: 'rows' }, enter: {
          x: { scale: 'x', field: 'x', offset: 30 }, y: { signal: 'datum.label * height / ' + height }, text: { field: 'text' } } }),
      ],
    });
  }

  // One column a layer, one row a part: how many times its floor each takes. The number stands in the cell where it fits.
  function layers(account, c, width) {
    const cells = new Map();
    for (const step of account.steps) {
      if (step.layer < 0 || !step.bytes) continue;
      const key = step.layer + '|' + step.role;
      const cell = cells.get(key) || { layer: step.layer, role: step.role, floor_ns: 0, now_ns: 0 };
      cell.floor_ns += step.floor_ns;
      cell.now_ns += step.now_ns;
      cells.set(key, cell);
    }
    const rows = [...cells.values()].filter((cell) => cell.floor_ns > 0.001 * account.token.now_ns / 30);
    for (const row of rows) row.ratio = row.now_ns / row.floor_ns;
    const roles = [...new Set(rows.map((row) => row.role))];
    const count = Math.max(1, ...rows.map((row) => row.layer + 1));
    const cell = (width - 110) / count;
    const worst = Math.max(1.3, ...rows.map((row) => row.ratio));
    for (const row of rows) {
      row.text = cell > 26 ? row.ratio.toFixed(2) : '';
      row.dark = (row.ratio - 1) / (worst - 1) > 0.55;
      row.tip = row.role + ', layer ' + row.layer + ': ' + digits(us(row.now_ns)) + ' µs, floor ' + digits(us(row.floor_ns));
    }
    const ticks = [...Array(count).keys()].filter((layer) => layer % Math.max(1, Math.ceil(22 / cell)) === 0);
    return Object.assign(base(c, width, 34 * roles.length + 90), {
      data: [{ name: 'rows', values: rows }],
      scales: [
        { name: 'x', type: 'band', range: 'width', domain: [...Array(count).keys()], padding: 0.04 },
        { name: 'y', type: 'band', range: 'height', domain: roles, padding: 0.08 },
        { name: 'fill', type: 'linear', domain: [1, worst], range: [c.shade, c.lost], clamp: true },
      ],
      axes: [
        { orient: 'bottom', scale: 'x', title: 'layer', values: ticks, ticks: false, domain: false },
        { orient: 'left', scale: 'y', ticks: false, domain: false },
      ],
      legends: [{ fill: 'fill', title: 'time over floor', orient: 'bottom', direction: 'horizontal', gradientLength: Math.min(200, width / 2), format: '.2f' }],
      marks: [
        { type: 'rect', from: { data: 'rows' }, encode: { enter: {
          x: { scale: 'x', field: 'layer' }, width: { scale: 'x', band: 1 }, y: { scale: 'y', field: 'role' }, height: { scale: 'y', band: 1 },
          fill: { scale: 'fill', field: 'ratio' }, stroke: value(c.line), tooltip: { field: 'tip' } } } },
        label(c, { from: { data: 'rows' }, enter: {
          x: { scale: 'x', field: 'layer', band: 0.5 }, y: { scale: 'y', field: 'role', band: 0.5 }, align: value('center'), fontSize: value(10),
          fill: { signal: "datum.dark ? '" + c.paper + "' : '" + c.ink + "'" }, text: { field: 'text' } } }),
      ],
    });
  }

  // One lane a thread; on a narrow screen the token is cut into several rows of lanes.
  function timeline(account, c, width) {
    const line = account.timeline;
    const threads = 1 + Math.max(0, ...line.spans.map((span) => span[0]));
    const pieces = width < 560 ? 6 : 3;
    const length = line.token_ns / pieces;
    const groups = [...new Set(data.steps.map((step) => step.role))];
    const rows = [];
    for (const [thread, step, , begin, end] of line.spans) {
      if (step < 0) continue;
      for (let piece = Math.floor(begin / length); piece < pieces && piece * length < end; ++piece) {
        const from = Math.max(begin, piece * length) - piece * length, to = Math.min(end, (piece + 1) * length) - piece * length;
        const info = data.steps[step];
        const wide = (to - from) / length * (width - 60);
        rows.push({ lane: piece * threads + thread, from: us(from), to: us(to), role: info.role,
          text: wide > 7 * info.role.length ? info.role : '',
          tip: info.role + (info.layer >= 0 ? ', layer ' + info.layer : '') + ': ' + digits(us(end - begin)) + ' µs on thread ' + thread });
      }
    }
    const lanes = [...Array(pieces * threads).keys()];
    const tones = groups.map((_, index) => (index % 2 ? c.floor : c.gap));
    return Object.assign(base(c, width, 26 * lanes.length + 60), {
      data: [{ name: 'rows', values: rows }],
      scales: [
        { name: 'x', type: 'linear', range: 'width', domain: [0, us(length)] },
        { name: 'y', type: 'band', range: 'height', domain: lanes, paddingInner: 0.2 },
        { name: 'fill', type: 'ordinal', domain: groups, range: tones },
      ],
      axes: [
        { orient: 'bottom', scale: 'x', title: 'µs from the left edge of each line', tickCount: Math.max(2, width / 130) },
        { orient: 'left', scale: 'y', ticks: false, domain: false, title: 'thread',
          encode: { labels: { update: { text: { signal: 'datum.value % ' + threads } } } } },
      ],
      marks: [
        { type: 'rect', from: { data: 'rows' }, encode: { enter: {
          x: { scale: 'x', field: 'from' }, x2: { scale: 'x', field: 'to' }, y: { scale: 'y', field: 'lane' }, height: { scale: 'y', band: 1 },
          fill: { scale: 'fill', field: 'role' }, stroke: value(c.paper), strokeWidth: value(0.5), tooltip: { field: 'tip' } } } },
        label(c, { from: { data: 'rows' }, enter: {
          x: { signal: "(scale('x', datum.from) + scale('x', datum.to)) / 2" }, y: { scale: 'y', field: 'lane', band: 0.5 },
          align: value('center'), fontSize: value(10), fill: value(c.paper), text: { field: 'text' } } }),
      ],
    });
  }

  function curve(c, width) {
    const rows = [];
    for (const account of data.depths) {
      rows.push({ depth: account.depth, ms: account.token.now_ns / 1e6, what: 'measured' });
      rows.push({ depth: account.depth, ms: account.token.floor_ns / 1e6, what: 'floor' });
    }
    return Object.assign(base(c, width, 300), {
      data: [{ name: 'rows', values: rows }],
      scales: [
        { name: 'x', type: 'linear', range: 'width', nice: true, zero: true, domain: { data: 'rows', field: 'depth' } },
        { name: 'y', type: 'linear', range: 'height', nice: true, zero: true, domain: { data: 'rows', field: 'ms' } },
        { name: 'stroke', type: 'ordinal', domain: ['measured', 'floor'], range: [c.lost, c.ink] },
        { name: 'shape', type: 'ordinal', domain: ['measured', 'floor'], range: ['circle', 'square'] },
      ],
      axes: [
        { orient: 'bottom', scale: 'x', title: 'tokens in the context', tickCount: Math.max(2, width / 130) },
        { orient: 'left', scale: 'y', grid: true, title: 'ms a token', tickCount: 5 },
      ],
      legends: [{ stroke: 'stroke', shape: 'shape', orient: 'top', direction: 'horizontal' }],
      marks: [{ type: 'group', from: { facet: { name: 'series', data: 'rows', groupby: 'what' } }, marks: [
        { type: 'line', from: { data: 'series' }, encode: { enter: {
          x: { scale: 'x', field: 'depth' }, y: { scale: 'y', field: 'ms' }, stroke: { scale: 'stroke', field: 'what' }, strokeWidth: value(2) } } },
        { type: 'symbol', from: { data: 'series' }, encode: { enter: {
          x: { scale: 'x', field: 'depth' }, y: { scale: 'y', field: 'ms' }, stroke: { scale: 'stroke', field: 'what' },
          shape: { scale: 'shape', field: 'what' }, fill: value(c.paper), strokeWidth: value(2), size: value(70),
          tooltip: { signal: "datum.what + ': ' + format(datum.ms, '.3f') + ' ms'" } } } },
      ] }],
    });
  }

  function beside(c, width) {
    const rows = [];
    for (const region of data.comparison.regions) {
      rows.push({ region: region.region, us: us(region.ours_ns), who: 'this program' });
      rows.push({ region: region.region, us: us(region.theirs_ns), who: data.comparison.other });
    }
    const names = ['this program', data.comparison.other];
    return Object.assign(base(c, width, 44 * rows.length / 2 + 90), {
      data: [{ name: 'rows', values: rows }],
      scales: [
        { name: 'x', type: 'linear', range: 'width', zero: true, nice: true, domain: { data: 'rows', field: 'us' } },
        { name: 'y', type: 'band', range: 'height', padding: 0.25, domain: [...new Set(rows.map((row) => row.region))] },
        { name: 'fill', type: 'ordinal', domain: names, range: [c.floor, c.lost] },
      ],
      axes: [
        { orient: 'bottom', scale: 'x', grid: true, title: 'µs', tickCount: Math.max(2, width / 130) },
        { orient: 'left', scale: 'y', ticks: false, domain: false, labelLimit: Math.max(110, width * 0.4) },
      ],
      legends: [{ fill: 'fill', orient: 'top', direction: width < 560 ? 'vertical' : 'horizontal' }],
      marks: [{ type: 'group', from: { facet: { data: 'rows', name: 'pair', groupby: 'region' } },
        encode: { enter: { y: { scale: 'y', field: 'region' } } },
        signals: [{ name: 'height', update: "bandwidth('y')" }],
        scales: [{ name: 'who', type: 'band', range: 'height', domain: names }],
        marks: [{ type: 'rect', from: { data: 'pair' }, encode: { enter: {
          y: { scale: 'who', field: 'who' }, height: { scale: 'who', band: 1 }, x: { scale: 'x', value: 0 }, x2: { scale: 'x', field: 'us' },
          fill: { scale: 'fill', field: 'who' }, stroke: value(c.paper), tooltip: { signal: "datum.who + ': ' + format(datum.us, ',.1f') + ' µs'" } } } }] }],
    });
  }

  const charts = { waterfall, recoverable, roofline, layers, timeline };

  function draw(element, spec) {
    element.textContent = '';
    new View(parse(spec), { renderer: 'svg', container: element, hover: false }).runAsync();
  }

  function drawAll() {
    const c = colours();
    for (const element of document.querySelectorAll('.chart')) {
      if (element.closest('[hidden]')) continue;
      const width = Math.max(240, element.clientWidth - 8);
      const { chart, index } = element.dataset;
      if (chart === 'curve') draw(element, curve(c, width));
      else if (chart === 'beside') draw(element, beside(c, width));
      else draw(element, charts[chart](data.depths[index], c, width));
    }
  }

  const sections = [...document.querySelectorAll('section[data-index]')];
  const nav = document.getElementById('depths');
  function show(index) {
    for (const section of sections) section.hidden = section.dataset.index !== String(index);
    for (const button of nav.children) button.setAttribute('aria-pressed', String(button.dataset.index === String(index)));
    drawAll();
  }
  if (sections.length > 1) {
    data.depths.forEach((account, index) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.dataset.index = index;
      button.textContent = 'depth ' + account.depth.toLocaleString('en');
      button.addEventListener('click', () => show(index));
      nav.append(button);
    });
  }
  show(0);

  let drawnWidth = document.documentElement.clientWidth;
  window.addEventListener('resize', () => {
    if (document.documentElement.clientWidth === drawnWidth) return;
    drawnWidth = document.documentElement.clientWidth;
    drawAll();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  // On paper everything is shown; afterwards the page is as it was.
  let before = null;
  window.addEventListener('beforeprint', () => {
    const folds = [...document.querySelectorAll('details')];
    before = before || { hidden: sections.map((section) => section.hidden), open: folds.map((fold) => fold.open) };
    for (const section of sections) section.hidden = false;
    for (const fold of folds) fold.open = true;
    drawAll();
  });
  window.addEventListener('afterprint', () => {
    if (!before) return;
    sections.forEach((section, index) => { section.hidden = before.hidden[index]; });
    [...document.querySelectorAll('details')].forEach((fold, index) => { fold.open = before.open[index]; });
    before = null;
    drawAll();
  });
})();
