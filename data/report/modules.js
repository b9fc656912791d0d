// Debian's Vega comes as separate CommonJS files: this loads each once, by name.
const bbModules = {};
const bbLoaded = {};
function bbRequire(name) {
  if (!(name in bbLoaded)) {
    const module = { exports: {} };
    bbLoaded[name] = module.exports;
    bbModules[name](module.exports, module, bbRequire);
    bbLoaded[name] = module.exports;
  }
  return bbLoaded[name];
}
// Interactive selections of a higher-level grammar: no chart here has one.
bbModules['vega-selections'] = (exports) => {
  const none = () => undefined;
  for (const name of ['selectionIdTest', 'selectionResolve', 'selectionTest', 'selectionTuples', 'selectionVisitor']) {
    exports[name] = none;
  }
};
