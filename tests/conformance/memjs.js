// npm memjs: see adapter.py.
'use strict';
const memjs = require('memjs');
const { serve } = require('./adapter.js');

const NEVER_CREATES = 0xffffffff;
const [host, port] = process.argv.slice(2);
const client = memjs.Client.create(`${host}:${port}`, {
  timeout: 10, retries: 0, logger: { log() {} }, // by default it logs to the standard output
});

// What the server did not do may come as an error.
async function write(verb, ...words) {
  try {
    return await client[verb](...words);
  } catch (problem) {
    if (/not stored|not found/i.test(problem.message)) return false;
    throw problem;
  }
}

const read = (value) => (value === null ? null : value.toString());

const change = async (verb, key, delta, options) => {
  const result = await write(verb, key, Number(delta), options);
  return result ? result.value : null;
};

serve({
  set: (key, value) => write('set', key, value, {}),
  add: (key, value) => write('add', key, value, {}),
  replace: (key, value) => write('replace', key, value, {}),
  append: (key, value) => write('append', key, value),
  get: async (key) => read((await client.get(key)).value),
  incr: (key, delta) => change('increment', key, delta, { expires: NEVER_CREATES }),
  decr: (key, delta) => change('decrement', key, delta, { expires: NEVER_CREATES }),
  create: (key, delta, initial) => change('increment', key, delta, { initial: Number(initial) }),
  delete: (key) => write('delete', key),
  touch: (key) => write('touch', key, 100),
  stats: () => new Promise((resolve, reject) => {
    client.stats((error, server, figures) => (error ? reject(error) : resolve(figures.version)));
  }),
  flush: async () => Object.values(await client.flush()).every((result) => result === true),
}, () => client.close());
