// spymemcached: see adapter.py.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.Future;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;

public class Spymemcached {
    private static final int SECONDS = 100;

    private final MemcachedClient client;
    private final boolean binary;
    private long token;

    Spymemcached(String address, boolean isBinary) throws Exception {
        binary = isBinary;
        client = new MemcachedClient(
            binary ? new BinaryConnectionFactory() : new DefaultConnectionFactory(),
            AddrUtil.getAddresses(address));
    }

    private static String shown(Object value) {
        return value == null ? "none" : "value\t" + value;
    }

    private static String written(Future<Boolean> done) throws Exception {
        return String.valueOf(done.get());
    }

    // The library says -1 for a key that is not there.
    private static String number(long value) {
        return value < 0 ? "none" : "value\t" + value;
    }

    private String shown(CASValue<Object> found) {
        token = found == null ? 0 : found.getCas();
        return shown(found == null ? null : found.getValue());
    }

    private String many(String[] keys) {
        StringBuilder line = new StringBuilder("many");
        for (Map.Entry<String, Object> entry : client.getBulk(Arrays.asList(keys)).entrySet()) {
            line.append('\t').append(entry.getKey()).append('\t').append(entry.getValue());
        }
        return line.toString();
    }

    private String read(String verb, String[] w) {
        switch (verb) {
        case "get": return shown(client.get(w[0]));
        case "gets": return shown(client.gets(w[0]));
        case "gat": return binary ? shown(client.getAndTouch(w[0], SECONDS)) : "unsupported";
        case "many": return many(w);
        case "version": return shown(client.getVersions().values().iterator().next());
        case "stats": return shown(client.getStats().values().iterator().next().get("version"));
        default: return "unsupported";
        }
    }

    private String answer(String verb, String[] w) throws Exception {
        switch (verb) {
        case "set": return written(client.set(w[0], 0, w[1]));
        case "add": return written(client.add(w[0], 0, w[1]));
        case "replace": return written(client.replace(w[0], 0, w[1]));
        case "append": return written(client.append(w[0], w[1]));
        case "prepend": return written(client.prepend(w[0], w[1]));
        case "cas": return String.valueOf(client.cas(w[0], token, w[1]) == CASResponse.OK);
        case "incr": return number(client.incr(w[0], Long.parseLong(w[1])));
        case "decr": return number(client.decr(w[0], Long.parseLong(w[1])));
        case "create":
            return binary ? number(client.incr(w[0], Long.parseLong(w[1]), Long.parseLong(w[2])))
                          : "unsupported";
        case "delete": return written(client.delete(w[0]));
        case "touch": return written(client.touch(w[0], SECONDS));
        case "flush": return written(client.flush());
        default: return read(verb, w);
        }
    }

    public static void main(String[] arguments) throws Exception {
        // The library logs to the standard error only what it is told to.
        Spymemcached peer = new Spymemcached(
            arguments[0] + ":" + arguments[1], arguments[2].equals("binary"));
        PrintStream out = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            String answer;
            try {
                answer = peer.answer(words[0], Arrays.copyOfRange(words, 1, words.length));
            } catch (Exception problem) {
                answer = "error\t" + problem.toString().replaceAll("\\s+", " ");
            }
            out.println(answer);
            out.flush();
        }
        peer.client.shutdown();
    }
}
