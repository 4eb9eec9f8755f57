// The loop of adapter.py for the clients of Node: a command gives a promise or a value.
'use strict';
const readline = require('readline');

function shown(result) {
  if (result === null || result === undefined) return 'none';
  if (typeof result === 'boolean') return String(result);
  if (typeof result === 'object') return ['many', ...Object.entries(result).flat()].join('\t');
  return 'value\t' + result;
}

// Commands run one after the other; `close` ends what keeps the process alive.
async function serve(commands, close) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...words] = line.split('\t');
    let answer = 'unsupported';
    if (commands[verb]) {
      try {
        answer = shown(await commands[verb](...words));
      } catch (problem) {
        answer = 'error\t' + String((problem && problem.message) || problem).replace(/\s+/g, ' ');
      }
    }
    process.stdout.write(answer + '\n');
  }
  close();
}

module.exports = { serve };
