// Run a Python script in Pyodide, with fastpool from a folder: node wasm.mjs PYODIDE FOLDER SCRIPT
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";

const [pyodide_folder, packages, script] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide_folder}/pyodide.mjs`));
const pyodide = await loadPyodide();
pyodide.FS.mkdir("/packages");
pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: packages }, "/packages");
pyodide.runPython("import sys; sys.path.insert(0, '/packages')");
try {
  pyodide.runPython(readFileSync(script, "utf8"));
} catch (error) {
  console.error(error.message); // (node would print Pyodide's source)
  process.exit(1);
}
