// The published schema of the configuration (config.schema.json), made from the one that checks it.
import { z } from 'zod';
import { configSchema } from './config-schema.js';

/** A JSON Schema (draft 2020-12) of documents as they may be written. */
export function configJsonSchema(): Record<string, unknown> {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, { io: 'input' });
  return {
    $schema,
    title: 'moonroute serve',
    description: 'Configuration of moonroute serve. Settings that contradict each other are refused at start.',
    ...schema,
  };
}
