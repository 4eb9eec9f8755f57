// npm memcached: see adapter.py.
'use strict';
const Memcached = require('memcached');
const { serve } = require('./adapter.js');

const [host, port] = process.argv.slice(2);
const client = new Memcached(`${host}:${port}`, { timeout: 10000, retries: 0 });
let token;

// It takes a callback of (error, result).
const call = (verb, ...words) => new Promise((resolve, reject) => {
  client[verb](...words, (error, result) => (error ? reject(error) : resolve(result)));
});

// A write that the server did not do comes as an error of these words, or as false.
async function write(verb, ...words) {
  try {
    return await call(verb, ...words);
  } catch (problem) {
    if (/not stored|NOT_STORED|EXISTS|not found/i.test(problem.message)) return false;
    throw problem;
  }
}

const number = async (verb, key, delta) => {
  const result = await call(verb, key, Number(delta));
  return result === false ? null : result;
};

serve({
  set: (key, value) => write('set', key, value, 0),
  add: (key, value) => write('add', key, value, 0),
  replace: (key, value) => write('replace', key, value, 0),
  append: (key, value) => write('append', key, value),
  prepend: (key, value) => write('prepend', key, value),
  cas: (key, value) => write('cas', key, value, token, 0),
  get: (key) => call('get', key),
  gets: async (key) => {
    const found = await call('gets', key);
    token = found && found.cas;
    return found && found[key];
  },
  many: (...keys) => call('getMulti', keys),
  incr: (key, delta) => number('incr', key, delta),
  decr: (key, delta) => number('decr', key, delta),
  delete: (key) => write('del', key),
  touch: (key) => write('touch', key, 100),
  version: async () => (await call('version'))[0].version,
  stats: async () => (await call('stats'))[0].version,
  flush: async () => (await call('flush'))[0],
}, () => client.end());
