// Whether each worker's HTTP answers: prompts are tokenised and contracts fetched there, and requests go there.
import { type Check, failed, ok } from '../finding.js';

export const workerHttp: Check = {
  code: 'worker-http',
  title: "the workers' HTTP answers",
  run: ({ workers }) =>
    workers.map(({ spec, httpFault }) =>
      httpFault === null
        ? ok(spec.id, `${spec.url} is healthy`)
        : failed(spec.id, httpFault, 'Start the worker, or correct its url in the configuration.'),
    ),
};
