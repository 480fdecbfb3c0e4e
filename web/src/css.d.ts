// The bundler takes style sheets in.
declare module '*.css';
