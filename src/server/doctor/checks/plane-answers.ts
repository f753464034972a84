// Whether the publishers of the event plane answer: a rank for which nobody does never gets warm in a router that comes late.
import { type Check, failed, ok, skipped } from '../finding.js';

export const planeAnswers: Check = {
  code: 'plane-answers',
  title: 'publishers of the event plane answer',
  run: ({ plane = [] }) =>
    plane.length === 0
      ? [skipped('plane', 'no worker is configured with a plane')]
      : plane.map(({ subject, planeId, lastEventId, fault }) =>
          fault === null
            ? ok(subject, `its publisher answers as worker ${planeId}: ${lastEventId} events so far`)
            : failed(
                subject,
                `nobody answers for worker ${planeId}: ${fault}`,
                'Run moonroute publish beside the worker, with this --id and the router’s model; see whether eventPlane.url is where it sends to.',
              ),
        ),
};
